"""Reductions of approximate values that are arrays of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import ApproximateArrays, over
from tilewright.spaces.derivation.rounding.reductions import (
    Terms,
    ends_of_best,
    is_exact,
    place_of_best,
    product_of_terms,
    sum_of_terms,
    terms_of_sum,
)
from tilewright.spaces.language.evaluation import sum_of_products
from tilewright.spaces.language.functions import REDUCERS, neutral
from tilewright.spaces.language.prefixes import Prefix, prefix_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.numerics.interval import Interval

Mask = np.ndarray | None
"""Says where the conditions hold that bound a reduction; None if there are none."""


def summed(program: Program, stage: Stage, meaning: ApproximateArrays, mask: Mask) -> Approximate:
    """Return a sum, factor by factor."""

    prefix = prefix_of(program, stage)

    def added(terms: Sequence[np.ndarray]) -> np.ndarray:
        if prefix:
            return prefix.reduced(np.asarray(reduce(np.multiply, terms)), meaning.axes)
        return sum_of_products([*map(np.asarray, terms)], meaning.axes, len(stage.axes), mask)

    return total(program, stage, meaning, added)


def total(
    program: Program,
    stage: Stage,
    meaning: ApproximateArrays,
    added: Callable[[Sequence[np.ndarray]], np.ndarray],
) -> Approximate:
    """Return a sum of which ``added`` adds up the products of given factors."""
    terms = terms_of_sum(program, stage, meaning)
    value = added(terms.values)
    if not terms.sizes:
        return Approximate(value)
    size = added(terms.sizes)
    sums = Terms(
        [value],
        [size],
        [added(part) for part in terms.off],
        [added(terms.squares)] if terms.squares else (),
        terms.alike,
        terms.apart,
        size if np.isfinite(size).all() else added([finite(part) for part in terms.sizes]),
    )
    return sum_of_terms(program, stage, meaning.kept(stage), sums)


def reduced(stage: Stage, meaning: ApproximateArrays, mask: Mask) -> Approximate:
    """Return ``max`` and ``min`` of all ends; places, anything where kernels may differ about the
    best element; products."""
    reducer, kept = REDUCERS[stage.reducer or ""], len(stage.axes)
    combine: np.ufunc = reducer.combine  # type: ignore[assignment]
    body = whole_body(stage, meaning)

    def flat(values: np.ndarray, outside: float) -> np.ndarray:
        inside = values if mask is None else np.where(mask, values, outside)
        return inside.reshape((*values.shape[:kept], -1))

    found = flat(body.value, neutral(reducer, body.value.dtype))
    value = combine.reduce(found, axis=-1)
    if reducer.argument:
        hits = flat(np.ones(body.value.shape, bool), False)
        place = np.argmax(hits & _is(found, value[..., None]), axis=-1)
        if is_exact(body):
            return Approximate(place)
        low, high, free = ends_of_best(reducer.name, body)
        contest = _contest(flat(low, -np.inf), flat(high, -np.inf), flat(free, False))
        return place_of_best(meaning, place, *contest)
    if body.interval is None:
        return Approximate(value)
    if stage.reducer == "prod":
        most = np.prod(np.abs(found) + flat(meaning.radius(body), 0.0), axis=-1)
        return product_of_terms(meaning, value, most, found.shape[-1])
    free = flat(body.interval.free, False).any(axis=-1)
    ends = (flat(end, reducer.identity) for end in (body.interval.low, body.interval.high))
    low, high = (combine.reduce(end, axis=-1) for end in ends)
    return Approximate(value, Interval(low, high, free))


def running(
    program: Program, stage: Stage, meaning: ApproximateArrays, prefix: Prefix
) -> Approximate:
    """Return products, ``max`` and ``min`` of all ends, over prefixes."""
    body = stage.body.fold(meaning)

    def along(values: Any, reducer: str = prefix.reducer) -> np.ndarray:
        return replace(prefix, reducer=reducer).reduced(np.asarray(values), meaning.axes)

    value = along(body.value)
    if body.interval is None:
        return Approximate(value)
    if stage.reducer == "prod":
        most, terms = np.abs(body.value) + meaning.radius(body), prod(program.shape(stage.over))
        return product_of_terms(meaning, value, along(most), terms)
    low, high, free = body.interval.low, body.interval.high, body.interval.free
    anything = along(np.asarray(free).astype(np.int8), "max") > 0
    return Approximate(value, Interval(along(low), along(high), anything))


def whole_body(stage: Stage, meaning: ApproximateArrays) -> Approximate:
    """Return the stage's body at all points."""
    shape = np.broadcast_shapes(*(axis.shape for axis in meaning.axes.values()))
    body = stage.body.fold(meaning)
    value = np.broadcast_to(body.value, shape)
    return over(Approximate(value, body.interval), lambda values: values)


def finite(sizes: np.ndarray) -> np.ndarray:
    """Return sizes with zeros in the place of those that are not finite."""
    return np.where(sizes < np.inf, sizes, 0.0)


def _contest(
    low: np.ndarray, high: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tell whether a second element may be the greatest and is not surely equal to the first; and
    the range of places allowed then: between the two, or everywhere if more than two may be the
    greatest.
    """
    near, last = high >= low.max(axis=-1)[..., None], low.shape[-1] - 1
    number, anything = near.sum(axis=-1), free.any(axis=-1)
    two = (number == 2) & ~anything
    ends = near.argmax(axis=-1), last - near[..., ::-1].argmax(axis=-1)
    contested = anything | (number > 1) & (near & (low < high)).any(axis=-1)
    return contested, np.where(two, ends[0], 0), np.where(two, ends[1], last)


def _is(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Equal, or NaN, which any order of comparing ends at."""
    return (values == wanted) | np.isnan(values)

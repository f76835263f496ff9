"""What right kernels may make of a reduction whose terms are known up to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from spaces.derivation.algebra import factors
from spaces.derivation.rounding.approximate import Approximate, Approximation
from spaces.dtypes import dtype
from spaces.language.evaluation import masked, sum_of_products
from spaces.language.functions import REDUCERS
from spaces.language.program import Program, Stage
from spaces.language.tree import Expression, Read
from spaces.numerics.interval import SLACK, Arithmetic, Interval

Mask = np.ndarray | None
"""Where the conditions hold that bound a reduction; None if there are none."""


def error_of_sum(program: Program, stage: Stage, terms: int, kind: str) -> tuple[float, float]:
    """The error allowed of a sum of so many terms, relative to its value and to the sum of its
    terms' magnitudes.

    Adding one term to the n before rounds their sum by half a unit at most. As random errors these
    add up, one term after the other and all of one sign, to a standard deviation of sqrt(n) / 6
    units of the sum (Higham and Mary, SISC 41, 2019): so sqrt(n) + 8 are beyond what is ever seen,
    in any order. Tensor cores truncate, see :func:`spaces.numerics.allowance.error_of_sums`: up to
    a unit of the sum for 16 products, and float8 products are summed with 14 bits.
    """
    unit = Arithmetic.of(kind).unit
    dtypes = _dtypes(program, stage)
    if dtypes and all(name.startswith("float8") for name in dtypes):
        unit = 2.0**-13
    truncating = {"float16", "bfloat16", "tfloat32"} & set(dtypes)
    return (terms / 16.0 * unit if truncating else 0.0), unit * (8.0 + terms**0.5)


def summed(program: Program, stage: Stage, meaning: Approximation, mask: Mask) -> Approximate:
    """A sum, factor by factor: beside the error of adding up, how far its terms may be off."""
    parts = [_rounded_to(program, stage, f, f.fold(meaning)) for f in factors(stage.body)]

    def added(terms: Sequence[np.ndarray]) -> np.ndarray:
        return _added(stage, meaning, mask, terms)

    value = added([part.value for part in parts])
    if all(part.is_whole for part in parts):
        return Approximate(value)
    sizes, radii = [np.abs(part.value) for part in parts], [part.radius for part in parts]
    off = np.zeros(())
    for place, radius in enumerate(radii):
        before = [size + r for size, r in zip(sizes[:place], radii[:place], strict=True)]
        off = off + added([*before, radius, *sizes[place + 1 :]])
    kind = meaning.rules.kind
    relative, absolute = error_of_sum(program, stage, prod(program.shape(stage.over)), kind)
    rounding = relative * np.abs(value) + absolute * added(sizes)
    error = off + rounding + Arithmetic.of(kind).least
    return Approximate(value, _within(value, error))


def reduced(stage: Stage, body: Approximate, mask: Mask) -> Approximate:
    """``max`` and ``min`` of all ends; places of exact values; products."""
    reducer, kept = REDUCERS[stage.reducer or ""], len(stage.axes)
    combine: np.ufunc = reducer.combine  # type: ignore[assignment]

    def flat(values: np.ndarray, outside: float) -> np.ndarray:
        inside = values if mask is None else np.where(mask, values, outside)
        return inside.reshape((*values.shape[:kept], -1))

    found = flat(body.value, _identity(reducer.identity, body.value.dtype))
    value = combine.reduce(found, axis=-1)
    if reducer.argument:
        hits = flat(np.ones(body.value.shape, bool), False)
        return Approximate(np.argmax(hits & _is(found, value[..., None]), axis=-1))
    if body.interval is None:
        return Approximate(value)
    free = flat(body.bounds.free, False).any(axis=-1)
    if stage.reducer == "prod":
        sizes, radius = np.abs(found), flat(body.radius, 0.0)
        rounding = sizes.shape[-1] * np.abs(value) * Arithmetic.of("float32").unit
        error = SLACK * (np.prod(sizes + radius, axis=-1) - np.abs(value) + rounding)
        return Approximate(value, _within(value, error))
    ends = (flat(end, reducer.identity) for end in (body.bounds.low, body.bounds.high))
    low, high = (combine.reduce(end, axis=-1) for end in ends)
    return Approximate(value, Interval(low, high, free))


def _within(value: np.ndarray, error: np.ndarray) -> Interval:
    """So far from a value; anything where the error is not known, but the value is."""
    unknown = np.isnan(error) & ~np.isnan(value)
    return Interval(value - error, value + error, unknown)


def _added(
    stage: Stage, meaning: Approximation, mask: Mask, terms: Sequence[np.ndarray]
) -> np.ndarray:
    """The sum of products over the axes that are reduced, where the mask holds."""
    counting = masked(terms, mask)
    if counting is not None:
        return sum_of_products(counting, meaning.axes, len(stage.axes))
    assert mask is not None
    shape = [axis.size for axis in meaning.axes.values()]
    product = np.where(mask, reduce(np.multiply, terms), 0)
    return np.broadcast_to(product, shape).sum(axis=tuple(range(len(stage.axes), len(shape))))


def _rounded_to(
    program: Program, stage: Stage, factor: Expression, found: Approximate
) -> Approximate:
    """A factor that is computed may be rounded to the dtype of the arrays that it is multiplied
    with, as tensor cores need it."""
    given = isinstance(factor, Read) and factor.name in program.operand
    epsilons = [dtype(name).epsilon for name in _dtypes(program, stage)]
    if given or found.is_whole or not epsilons or factor.axes.isdisjoint(stage.over):
        return found
    width, b = np.abs(found.value) * max(epsilons), found.bounds
    return Approximate(found.value, Interval(b.low - width, b.high + width, b.free))


def _dtypes(program: Program, stage: Stage) -> list[str]:
    """The dtypes of the operands that a sum of products has as factors."""
    found = factors(stage.body)
    names = [f.name for f in found if isinstance(f, Read) and f.name in program.operand]
    return [program.operand[name].dtype for name in names] if len(found) > 1 else []


def _identity(value: float, kind: np.dtype) -> float:
    if kind.kind != "i" or np.isfinite(value):
        return value
    return np.iinfo(kind).min if value < 0 else np.iinfo(kind).max


def _is(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Equal, or NaN, which any order of comparing ends at."""
    return (values == wanted) | np.isnan(values)

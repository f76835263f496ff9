"""Evaluate a program exactly: in float64, and in int64 where values are made of integers alone.

Each stage is evaluated by broadcasting over its axes, a sum of products factor by factor. Kernels
are compared with this reference.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.dtypes import EXACT_WIDE
from tilewright.spaces.language.constants import constant_arrays
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.functions import FUNCTIONS, REDUCERS, Reducer, neutral
from tilewright.spaces.language.meaning import Meaning, Operations
from tilewright.spaces.language.prefixes import axes_of_points, divided_axis, prefix_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import Ranges, ranges
from tilewright.spaces.language.tree import Binary, Expression

CHUNK = 1 << 21
"""Elements that are evaluated at a time, as far as the axes that a stage keeps allow."""

FEW = 1 << 10
"""Terms that are not divided into those of finite factors and others."""

Arrays = Mapping[str, np.ndarray]

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
    "//": operators.floordiv,
    "%": operators.mod,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "==": operators.eq,
    "!=": operators.ne,
}
"""Each operator as a function of two arrays or numbers."""

LARGEST = 1 << 60
"""Integers up to it stay integers, whatever is made of them."""


def literal(value: float) -> int | float:
    """A number of an expression: whole ones are integers, as indices are, as far as float64 has
    each, and so is what is made of integers; others are of floating point."""
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else float(value)
    return int(value) if abs(value) <= EXACT_WIDE and value.is_integer() else float(value)


def is_literal(operator: str, left: Any, right: Any) -> bool:
    """Tell whether an operation on two integer literals is folded by Python, which is exact."""
    return operator in ("+", "-", "*") and isinstance(left, int) and isinstance(right, int)


def evaluate(program: Program, inputs: Arrays) -> dict[str, np.ndarray]:
    """Return the outputs by name, of float64 or int64; what an integer output cannot hold is
    clipped to its range, as kernels do. ``inputs`` are arrays by operand, see
    :mod:`spaces.language.inputs`.
    """
    values = _stages(program, inputs, ranges(program))
    results = {}
    for output in program.outputs:
        value = values[output.name]
        if output.element.is_integer:
            value = np.clip(value, *output.element.limits)
        results[output.name] = value
    return results


def evaluate_stages(program: Program, inputs: Arrays) -> dict[str, np.ndarray]:
    """Evaluate all stages, by name, in float64 or int64, and convert the operands to the same."""
    return _stages(program, inputs, replace(ranges(program), along={}))


def _stages(program: Program, inputs: Arrays, found: Ranges) -> dict[str, np.ndarray]:
    """Return the same; stages that ``found`` has along entries are known at these alone."""
    from tilewright.spaces.language.ranged import RangedStages
    from tilewright.spaces.language.stepped import step_by_step

    ranged = RangedStages(program, found, CHUNK)
    given = {**inputs, **constant_arrays(program)}
    values = {o.name: _wide(o.plain(given[o.name])) for o in program.operands}
    stepped = {name: cycle for cycle in cycles(program) for name in cycle.stages}
    with np.errstate(all="ignore"):
        for stage in program.stages:
            if stage.name in values:
                continue
            if stage.name in stepped:
                step_by_step(program, stepped[stage.name], values)
            elif (own := found.of(stage)) is not None:
                values[stage.name] = ranged.value(stage, own, values)
            else:
                values[stage.name] = _evaluated(program, stage, values)
    return values


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)


def _evaluated(program: Program, stage: Stage, values: Arrays) -> np.ndarray:
    """Return the stage in pieces along its longest axis, put together."""
    shape = program.shape(stage.axes)
    if not shape:
        return np.asarray(piece_of(program, stage, values, {}))
    longest = divided_axis(program, stage, program.extent)
    step = max(1, CHUNK * shape[longest] // largest_array(program, stage, program.extent))
    parts = [
        slice(start, min(start + step, shape[longest])) for start in range(0, shape[longest], step)
    ]
    axis = stage.axes[longest]
    pieces = [piece_of(program, stage, values, {axis: part}) for part in parts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=longest)


def largest_array(program: Program, stage: Stage, sizes: Mapping[str, int]) -> int:
    """Return the elements of the largest array on the way to a stage whose axes have these
    ``sizes``: a factor's, or all points of the axes."""
    factors = factors_of(stage)
    bounding = frozenset[str]().union(*(c.axes for c in program.bounding(stage)))
    if len(factors) < 2 or not any(bounding <= factor.axes for factor in factors):
        return prod(sizes[axis] for axis in axes_of_points(program, stage))
    return max(
        prod(sizes[axis] for axis in axes) for axes in (stage.axes, *(f.axes for f in factors))
    )


def piece_of(
    program: Program, stage: Stage, values: Arrays, part: Mapping[str, slice]
) -> np.ndarray:
    """Return a stage at a part of the values of some axes."""
    grid = _grid(program, (*stage.axes, *stage.over), part)
    bounded = bool(program.bounding(stage))
    return value_of(program, stage, Exact(values, grid, part, bounded), grid)


def value_of(
    program: Program, stage: Stage, meaning: Meaning[Any], grid: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return a stage at the points of a ``grid``, with a ``meaning`` of expressions as arrays of
    numbers there."""
    conditions = program.bounding(stage)
    if prefix := prefix_of(program, stage):
        return prefix.reduced(np.asarray(stage.body.fold(meaning)), grid)
    factors = factors_of(stage)
    holding = [condition.fold(meaning) for condition in conditions]
    mask = reduce(np.logical_and, holding) if holding else None
    if len(factors) > 1:
        found = [np.asarray(factor.fold(meaning)) for factor in factors]
        return sum_of_products(found, grid, len(stage.axes), mask)
    shape = np.broadcast_shapes(*(axis.shape for axis in grid.values()))
    body = np.broadcast_to(stage.body.fold(meaning), shape)
    if stage.reducer is None:
        return body
    return _reduced(REDUCERS[stage.reducer], body, mask, len(stage.axes))


def _grid(
    program: Program, axes: Sequence[str], part: Mapping[str, slice]
) -> dict[str, np.ndarray]:
    """Return the values of each axis along a dimension of its own."""
    return {
        axis: np.arange(program.extent[axis])[part.get(axis, slice(None))].reshape(
            [-1 if other == axis else 1 for other in axes]
        )
        for axis in axes
    }


def factors_of(stage: Stage) -> list[Expression]:
    """Return the factors of a sum of products; none of another stage."""
    return list(_factors(stage.body)) if stage.reducer == "sum" else []


def _factors(node: Expression) -> Iterator[Expression]:
    match node:
        case Binary("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield node


def sum_of_products(
    factors: Sequence[np.ndarray],
    grid: Mapping[str, np.ndarray],
    kept: int,
    mask: np.ndarray | None = None,
) -> np.ndarray:
    """Sums over the dimensions from ``kept`` on of products of arrays that broadcast, where the
    mask holds."""
    extents = [axis.size for axis in grid.values()]
    wide = [_aligned(factor, len(extents)) for factor in factors]
    return _sums(wide, None if mask is None else _aligned(mask, len(extents)), extents, kept)


def _aligned(array: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the array with so many dimensions, the first of them of one place."""
    return array.reshape([1] * (dimensions - array.ndim) + list(array.shape))


def _sums(
    factors: Sequence[np.ndarray], mask: np.ndarray | None, extents: Sequence[int], kept: int
) -> np.ndarray:
    """Return the same: at once where the sums are of terms, however they are formed; of what is
    infinite in parts, one of which is of finite factors alone, or each small enough."""
    counting = _masked(factors, mask)
    if counting is not None and _sums_are_of_terms(counting, extents, kept):
        return _contracted(counting, extents, kept)
    dimension, parts = _parts(factors, extents, kept)
    if len(parts) == 1:
        terms = reduce(np.multiply, factors)
        terms = terms if mask is None else np.where(mask, terms, 0)
        return np.broadcast_to(terms, extents).sum(axis=tuple(range(kept, len(extents))))
    found = []
    for part in parts:
        cut = [_cut(factor, part, dimension) for factor in factors]
        own = None if mask is None else _cut(mask, part, dimension)
        sizes = [*extents[:dimension], part.size, *extents[dimension + 1 :]]
        found.append(_sums(cut, own, sizes, kept))
    places = np.argsort(np.concatenate(parts))
    return np.concatenate(found, axis=dimension).take(places, axis=dimension)


def _masked(factors: Sequence[np.ndarray], mask: np.ndarray | None) -> Sequence[np.ndarray] | None:
    """Return factors of the same products where the mask holds, and of zeros elsewhere; None where
    zeros in one of them would not do."""
    if mask is None:
        return factors
    finite = [bool(np.isfinite(factor).all()) for factor in factors]
    for place, factor in enumerate(factors):
        others = [*factors[:place], *factors[place + 1 :]]
        spans = np.broadcast_shapes(factor.shape, mask.shape) == factor.shape
        if spans and all([*finite[:place], *finite[place + 1 :]]):
            return [np.where(mask, factor, 0), *others]
    return [mask.astype(np.result_type(*factors)), *factors] if all(finite) else None


def _sums_are_of_terms(factors: Sequence[np.ndarray], extents: Sequence[int], kept: int) -> bool:
    """Tell whether sums are the same if some factors are added up before others multiply them:
    those of infinite terms are not, for infinities of both signs are no number together."""
    if all(np.isfinite(factor).all() for factor in factors):
        return True
    summed = extents[kept:]
    return len(factors) == 2 and all(f.shape[kept:] == tuple(summed) for f in factors)


def _contracted(factors: Sequence[np.ndarray], extents: Sequence[int], kept: int) -> np.ndarray:
    """Return sums of products whose factors may be added up in any order."""
    arguments: list[object] = []
    found = set()
    for factor in factors:
        places = [place for place, extent in enumerate(factor.shape) if extent > 1]
        found.update(places)
        arguments += [factor.reshape([factor.shape[place] for place in places]), places]
    result = [place for place in range(kept) if place in found]
    sums = np.einsum(*arguments, result, optimize=True)  # type: ignore[call-overload]
    repeated = prod(extents[place] for place in range(kept, len(extents)) if place not in found)
    shape = [extents[place] if place in found else 1 for place in range(kept)]
    return np.broadcast_to((sums * repeated).reshape(shape), extents[:kept])


def _parts(
    factors: Sequence[np.ndarray], extents: Sequence[int], kept: int
) -> tuple[int, list[np.ndarray]]:
    """Return the dimension of the sums along which they are divided, and the places of each part:
    where factors are finite and the others, if more than a few terms are divided so, or halves of
    very many; a single part of all places else."""
    points = prod(extents)
    for dimension in sorted(range(kept if points > FEW else 0), key=lambda d: -extents[d]):
        others = tuple(place for place in range(len(extents)) if place != dimension)
        finite = reduce(np.logical_and, [np.isfinite(f).all(axis=others) for f in factors])
        if finite.any() and not finite.all():
            return dimension, [np.flatnonzero(finite), np.flatnonzero(~finite)]
    longest = max(range(kept), key=lambda dimension: extents[dimension], default=0)
    if kept and points > CHUNK and extents[longest] > 1:
        return longest, np.array_split(np.arange(extents[longest]), 2)
    return 0, [np.arange(0)]


def _cut(array: np.ndarray, places: np.ndarray, dimension: int) -> np.ndarray:
    """Return the array at places along a dimension of the points, if it differs along that."""
    return array if array.shape[dimension] == 1 else array.take(places, axis=dimension)


def _reduced(reducer: Reducer, body: np.ndarray, mask: np.ndarray | None, kept: int) -> np.ndarray:
    """Reduce over the dimensions from ``kept`` on, where the mask holds."""
    shape = (*body.shape[:kept], -1)
    if mask is not None:
        body = np.where(mask, body, neutral(reducer, body.dtype))
    flat = body.reshape(shape)
    result = reducer.combine.reduce(flat, axis=-1)  # type: ignore[attr-defined]
    if not reducer.argument:
        return result
    hits = (flat == result[..., None]) | (flat != flat)
    if mask is not None:
        hits &= np.broadcast_to(mask, body.shape).reshape(shape)
    return np.argmax(hits, axis=-1)


class Elementwise(Operations[Any]):
    """The meaning (:class:`spaces.language.tree.Meaning`) of numbers and operations on arrays that
    broadcast, of expressions whose reads are known: in float64 if these are."""

    def number(self, value: float) -> Any:
        """Give the number in float64."""
        return np.float64(value)

    def negation(self, inner: Any) -> Any:
        """Element by element."""
        return -inner

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        """Element by element."""
        return OPERATIONS[operator](left, right)

    def comparison(self, operator: str, left: Any, right: Any) -> Any:
        """Element by element."""
        return OPERATIONS[operator](left, right)

    def select(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return ``numpy.where``."""
        return np.where(condition, then, otherwise)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """Return the function's reference."""
        return FUNCTIONS[function].reference(*arguments)


@dataclass(frozen=True)
class Exact(Elementwise):
    """The meaning (:class:`spaces.language.tree.Meaning`) of a tree as arrays that broadcast.

    ``part`` says which values of an axis the grid has, if not all. Where reads are ``bounded`` by
    conditions, those that leave their array are of elements that do not count. ``flat`` has the
    values of axes that share the dimension of all entries (:mod:`spaces.language.ranged`), and
    ``along`` the dimensions of stages that lie along it.
    """

    values: Arrays
    grid: Mapping[str, np.ndarray]
    part: Mapping[str, slice]
    bounded: bool
    flat: Mapping[str, np.ndarray] = field(default_factory=dict)
    along: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def number(self, value: float) -> Any:
        """Give a whole number as an integer."""
        number = literal(value)
        return number if isinstance(number, int) else np.float64(number)

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        """Fold literals exactly; element by element elsewhere."""
        if is_literal(operator, left, right):
            return self.number(OPERATIONS[operator](left, right))
        return OPERATIONS[operator](np.asarray(left), right)

    def axis(self, name: str) -> np.ndarray:
        """Give the grid's values, or those at each entry."""
        return self.flat[name] if name in self.flat else self.grid[name]

    def read(self, name: str, indices: Sequence[np.ndarray], outside: float | None) -> np.ndarray:
        """Give the elements at the indices: by a view where these are axes."""
        array = self.values[name]
        if name in self.along:
            return self._plain(array, self.along[name])
        axes = [self._axis(index) for index in indices]
        if None not in axes and len(set(axes)) == len(axes) and outside is None:
            return self._plain(array, [axis for axis in axes if axis is not None])
        if outside is None and not self.bounded:
            return array[tuple(indices)]
        extents = list(zip(indices, array.shape, strict=True))
        entries = array[tuple(np.clip(i, 0, extent - 1) for i, extent in extents)]
        if outside is None:
            return entries
        within = [(index >= 0) & (index < extent) for index, extent in extents]
        inside = reduce(np.logical_and, within)
        return np.where(inside, entries, self._constant(outside, array))

    def _axis(self, index: np.ndarray) -> str | None:
        return next((name for name, values in self.grid.items() if values is index), None)

    def _plain(self, array: np.ndarray, axes: Sequence[str]) -> np.ndarray:
        """Return the array as a view whose dimensions are those of the grid."""
        names = list(self.grid)
        extents = [self.grid[axis].size for axis in axes]
        whole = [self.part.get(a, slice(0, e)) for a, e in zip(axes, extents, strict=True)]
        places = sorted(range(len(axes)), key=lambda place: names.index(axes[place]))
        shape = [self.grid[name].size if name in axes else 1 for name in names]
        return array[tuple(whole)].transpose(places).reshape(shape)

    @staticmethod
    def _constant(value: float, array: np.ndarray) -> float:
        whole = array.dtype.kind == "i" and value.is_integer()
        return int(value) if whole else value

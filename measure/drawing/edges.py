"""Edge inputs: values that occur in practice and not in random inputs, with the right outputs.

- Scores that are far apart, operands with large means, and operands that grow along the reduced
  axes (:mod:`measure.drawing.cancelling` says which mistakes they are to show).
- Elements that a program hides are NaN, and infinite.
- Masks that are added to scores: minus infinity for all of a row, or for nearly all; the least
  finite number; others of its size.
- Values that are equal, huge, tiny, infinite or NaN, have an outlier or a large mean, in
  neighbouring rows (:mod:`measure.drawing.slices`).

The program in float64 gives the right outputs, exactly where they are NaN or infinite. Where
float32 overflows on the way, any value is allowed (:mod:`spaces.derivation.rounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf, nan, prod
from typing import Any

import numpy as np

from tilewright.measure.drawing.balanced_scores import balanced
from tilewright.measure.drawing.hidden import hidden, hides
from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.masks import masked_operands
from tilewright.measure.drawing.program_sensitivity import sensitivity
from tilewright.measure.drawing.programs import STEPS, ProgramDraw
from tilewright.measure.drawing.sampling import sample
from tilewright.measure.drawing.scores import scores_of
from tilewright.measure.drawing.shifts import Shift, cancelling_operands, shifts
from tilewright.measure.drawing.slices import Kind, Slices, slices, turns
from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.recurrent.view import carried
from tilewright.spaces.derivation.rounding.reads import places_read
from tilewright.spaces.derivation.rounding.rows import Places, first_steps
from tilewright.spaces.dtypes import DType
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import Call
from tilewright.spaces.numerics.interval import Arithmetic
from tilewright.spaces.numerics.mode import Numerics

Inputs = Mapping[str, np.ndarray]
Change = Callable[[ProgramDraw, np.random.Generator], Inputs]
"""Makes other values of some of a draw's inputs, which is judged at its rows."""
POINTS = 1 << 16
"""Points of the largest stage at which an edge is judged."""
EQUAL, HUGE = 0.1, 1e38
WIDEST = 2**31
"""The largest whole number: products of two of these stay within 64 bits."""
FINITE = 3
"""Elements of a row that a mask leaves."""


@dataclass(frozen=True)
class Edge:
    """Inputs of one kind."""

    name: str
    change: Change


def with_edges(
    draw: Draw,
    most: int = POINTS,
    one_axis: bool = False,
    numerics: Numerics = Numerics.STRICT,
) -> Iterator[Draw]:
    """Yield the same problem with inputs of each kind, judged at so many points at ``most``; along
    one axis alone where that is wanted. Kernels of ``numerics`` are right on them."""
    if isinstance(draw, ProgramDraw):
        program = draw.program
        for number, edge in enumerate(edges(program, numerics)):
            generator = np.random.default_rng(number)
            rows = first_steps(program, STEPS, sample(program, most, generator, one_axis))
            judged = replace(draw, rows=rows, name=edge.name)
            given = edge.change(judged, generator)
            yield replace(judged, inputs={**draw.inputs, **given})


def edges(program: Program, numerics: Numerics = Numerics.STRICT) -> list[Edge]:
    """List the edges that make sense for a program's operands. Where ``FAST`` algorithms are to be
    right, there are no large means, and all values of a row are of one size and finite.
    """
    if numerics is Numerics.FAST:
        return [*_hidden(program), *_masked(program), *_valued(program, _even_values)]
    valued = _valued(program, _values)
    return [*_shifted(program), *_hidden(program), *_masked(program), *valued]


def _shifted(program: Program) -> Iterator[Edge]:
    if scores_of(program) is None and not cancelling_operands(program):
        return
    how = sensitivity(program)
    for shift in shifts(program, how.spread, how.steep):
        yield Edge(shift.name, partial(_with_shift, shift))


def _with_shift(shift: Shift, draw: ProgramDraw, generator: np.random.Generator) -> Inputs:
    if shift.one is not None:
        shift = balanced(shift, draw.program, draw.inputs, draw.rows)
    return shift.applied(draw.inputs)


def _hidden(program: Program) -> Iterator[Edge]:
    if hides(program):
        for value in (nan, inf):
            yield Edge(f"{value} in hidden places", partial(_with_hidden, value))


def _with_hidden(value: float, draw: ProgramDraw, generator: np.random.Generator) -> Inputs:
    program = draw.program
    where, given = hidden(program, draw.inputs, draw.rows), {}
    for operand in program.operands:
        if has(operand.element, value) and where[operand.name].any():
            values = draw.inputs[operand.name]
            given[operand.name] = operand.array(
                np.where(where[operand.name], values.dtype.type(value), values)
            )
    return given


def _masked(program: Program) -> Iterator[Edge]:
    judged = _judged(program)
    for own, sign in masked_operands(program).values():
        kinds = _masks(own.operand.element, sign, whole=not _takes_logarithms(program))
        for turn in range(turns(own.count(judged.get(own.operand.name)), len(kinds))):
            yield Edge(f"{own.operand.name} as a mask", partial(_in_slices, {own: kinds}, turn))


def _valued(program: Program, kinds: Callable[[Program, Operand], list[Kind]]) -> Iterator[Edge]:
    every = {own: kinds(program, own.operand) for own in slices(program, whole=True)}
    if every:
        judged = _judged(program)
        fewest = min(own.count(judged.get(own.operand.name)) for own in every)
        for turn in range(turns(fewest, max(map(len, every.values())))):
            yield Edge("values out of the ordinary", partial(_in_slices, every, turn))


def _in_slices(
    every: Mapping[Slices, Sequence[Kind]],
    turn: int,
    draw: ProgramDraw,
    generator: np.random.Generator,
) -> Inputs:
    """Return the operands in slices, each of which has its kinds in turn, where judged rows read
    them."""
    read = places_read(draw.program, draw.rows) if draw.rows else {}
    given = {}
    for place, (own, kinds) in enumerate(every.items()):
        name = own.operand.name
        first = turn * own.count(read.get(name)) + place
        given[name] = own.changed(draw.inputs[name], kinds, first, generator, read.get(name))
    return given


@lru_cache(maxsize=256)
def _judged(program: Program) -> Mapping[str, Places]:
    """Return the places of operands that rows of :data:`POINTS` points read."""
    rows = sample(program, POINTS, np.random.default_rng(0))
    return places_read(program, rows) if rows else {}


def has(element: DType, value: float) -> bool:
    """Tell whether a type can represent NaN, or infinity: some types of eight bits have no
    infinity.
    """
    if element.is_integer:
        return False
    with np.errstate(all="ignore"):
        found = np.asarray(value).astype(element.numpy).astype(np.float64)
    return bool(np.isnan(found)) if np.isnan(value) else bool(found == value)


def _takes_logarithms(program: Program) -> bool:
    """Tell whether a program takes the logarithm of a sum, which may have no terms. In a row of
    minus infinity alone, logsumexp is NaN by its formula, and minus infinity by intention.
    """
    nodes = (node for stage in program.stages for node in stage.body.walk())
    return any(isinstance(node, Call) and node.function == "log" for node in nodes)


def _masks(element: DType, sign: int, whole: bool) -> list[Kind]:
    """Return the rows of masks, those first that matter most; infinities where the type has them,
    and for the ``whole`` row if that is wanted."""
    left_out, most = sign * inf, sign * largest(element)
    infinite: list[Kind] = [
        lambda rows, generator: _few(rows, left_out, generator),
        lambda rows, _: np.full_like(rows, left_out if whole else most),
        lambda rows, _: _half(rows, left_out, rows.shape[1] // 2, True),
        lambda rows, _: _half(rows, left_out, rows.shape[1] // 3, False),
    ]
    finite: list[Kind] = [
        lambda rows, _: np.full_like(rows, most),
        lambda rows, generator: _few(rows, most, generator),
        lambda rows, _: np.full_like(rows, most / 34),
        lambda rows, _: np.full_like(rows, -most / 1.2),
    ]
    pairs = zip(infinite, finite, strict=True)
    kinds = [kind for pair in pairs for kind in pair] if has(element, left_out) else finite
    return [*kinds, _as_ever]


def _factors(program: Program) -> Iterator[tuple[Stage, list[str]]]:
    """Yield the sums of products, and the operands that are factors of each. A state that is
    carried along positions has the product of some factors of its terms alone, and of sums within
    these."""
    every: dict[str, list[str]] = {}
    for stage in program.stages:
        found = factors(stage.body) if stage.reducer == "sum" else ()
        if len(found) > 1:
            names = [read.name for factor in found for read in factor.value_reads]
            if stage.name == carried(program):
                names += [name for each in names for name in every.get(each, ())]
            every[stage.name] = names
            yield stage, names


def _with_infinity(program: Program) -> set[str]:
    """Return the operands that may have NaN and infinities: not what is multiplied by an array that
    is read across its borders, for kernels may leave out terms in which that is zero, or not."""
    found = {operand.name for operand in program.operands}
    for stage, names in _factors(program):
        across = {read.name for read in stage.body.reads if read.outside is not None}
        if across:
            found -= set(names) - across
    return found


def _is_of_three(program: Program, name: str) -> bool:
    """Tell whether a sum has an operand as one of three factors or more. The product of two of
    these may be too large or too small for float32, whatever the third is; and kernels may
    multiply the finished sum by what all terms have in common."""
    every = ([each for each in names if each in program.operand] for _, names in _factors(program))
    return any(name in given and len(given) > 2 for given in every)


def _room(program: Program) -> float:
    """Return how large values may be for their sums to be far from what the accumulator's dtype
    has, where that is not the dtype that kernels compute in."""
    if not program.accumulator:
        return inf
    terms = max(prod(program.shape(stage.over)) for stage in program.stages)
    return Arithmetic.of(program.accumulator).largest / 4 / terms


def _huge(program: Program, name: str) -> float:
    """Return how large an operand's values may be. Those of scores and moments are not huge, nor
    are factors of three. Beside a stage the sum stays finite if weights are divided by their sum in
    the end.
    """
    scores = scores_of(program)
    if scores is not None and name in scores.operands:
        return 0.0
    if name in cancelling_operands(program) or _is_of_three(program, name):
        return 0.0
    most = min(HUGE, _room(program))
    for stage, names in _factors(program):
        given = [each for each in names if each in program.operand]
        if name in given and len(given) < len(names):
            most = min(most, HUGE / prod(program.shape(stage.over)))
    return most


def _values(program: Program, operand: Operand) -> list[Kind]:
    """Rows out of the ordinary, those first that matter most."""
    element, name = operand.element, operand.name
    if element.is_integer:
        return _whole_values(element)
    most, huge = largest(element), _huge(program, name)
    special = name in _with_infinity(program)
    kinds: list[Kind] = [
        _as_ever,
        lambda rows, generator: _one(rows, rows * 0 + min(1e6, most / 4), generator),
        _equal,
        *([_set(nan)] if special and has(element, nan) else []),
        _tiny(element, 1e-37 if huge else 1e-30),
        lambda rows, _: rows + min(1e4, most / 8, _room(program)),
    ]
    if huge:
        kinds.append(lambda rows, _: rows * min(huge, most / 4))
    if special and has(element, inf) and not _is_of_three(program, name):
        kinds += [_set(inf), _set(-inf)]
    if any(name in names for _, names in _factors(program)):
        kinds.append(lambda rows, _: rows * 0)
    return kinds


def _even_values(program: Program, operand: Operand) -> list[Kind]:
    """Return the rows of values of one size."""
    element = operand.element
    if element.is_integer:
        return _whole_values(element)
    large = min(1e12, largest(element) / 8, _room(program))
    return [_as_ever, _equal, _tiny(element, 1e-30), lambda rows, _: rows * large]


def _equal(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Equal values, whose sums show each rounding."""
    return np.full_like(rows, EQUAL)


def _tiny(element: DType, tiny: float) -> Kind:
    """Return the values of which sums of halves do not underflow."""
    small = max(tiny, 256 * least(element))
    return lambda rows, _: _normal(rows * small, element)


def _whole_values(element: DType) -> list[Kind]:
    """Return the rows of the least and the greatest whole numbers of a type, one among others, and
    zeros."""
    least, most = (max(-WIDEST, min(limit, WIDEST)) for limit in element.limits)
    return [
        _as_ever,
        lambda rows, _: np.full_like(rows, least),
        lambda rows, _: np.full_like(rows, most),
        lambda rows, generator: _one(rows, np.full_like(rows, least), generator),
        lambda rows, _: rows * 0,
    ]


def _set(value: float) -> Kind:
    return lambda rows, generator: _one(rows, np.full_like(rows, value), generator)


def _normal(rows: np.ndarray, element: DType) -> np.ndarray:
    """Return the zeros for subnormal numbers, which some instructions take for zero."""
    return np.where(abs(rows) < least(element), 0.0, rows)


def _as_ever(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return rows


def _one(rows: np.ndarray, others: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return one element of each row as in the ``others``."""
    place = generator.integers(rows.shape[1], size=(len(rows), 1))
    return np.where(np.arange(rows.shape[1]) == place, others, rows)


def _few(rows: np.ndarray, value: float, generator: np.random.Generator) -> np.ndarray:
    """All elements of each row but a few have a value."""
    places = generator.integers(rows.shape[1], size=(len(rows), FINITE))
    found = np.full_like(rows, value)
    np.put_along_axis(found, places, np.take_along_axis(rows, places, 1), 1)
    return found


def _half(rows: np.ndarray, value: float, count: int, first: bool) -> np.ndarray:
    """Give a value to ``count`` of the first, or of the last, elements of each row."""
    place = np.arange(rows.shape[1])
    return np.where(place < count if first else place >= rows.shape[1] - count, value, rows)


def largest(element: DType) -> float:
    """Return the greatest finite number of a type of floating point."""
    return float(_limits(element).max)


def least(element: DType) -> float:
    """Return the least normal number of a type."""
    return float(_limits(element).smallest_normal)


def _limits(element: DType) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(element.numpy)  # type: ignore[no-untyped-call]

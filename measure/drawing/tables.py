"""Tables of indices that random draws seldom contain, and that tell a wrong kernel from a right
one.

A kernel has separate code for partial tiles, often for each possible number of remaining rows. One
draw has segments or lengths of a few sizes, and most of that code does not run. So candidates for
the best are checked on more tables, the same ones each time: all entries the least, or the
greatest; rising and falling entries; segments and lengths of each of :func:`critical_sizes`, with
empty ones between them. Tables that choose the terms of a sum only rise and fall: if most terms are
equal, they round alike, and the error may exceed the bounds. So do packed codes where ``FAST``
kernels are to be right: weights that are all zero allow no error relative to activations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.programs import FINAL_POINTS, ProgramDraw
from tilewright.measure.drawing.sampling import sample
from tilewright.spaces.algebra.sequences import in_turn
from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.rounding.repeats import gathered
from tilewright.spaces.derivation.rounding.rows import Rows, reads
from tilewright.spaces.language.program import Entries, Operand, Program
from tilewright.spaces.language.ranges import pointers_of
from tilewright.spaces.language.tree import AxisValue
from tilewright.spaces.numerics.mode import Numerics

MOST = 12
"""Tables with sizes of :func:`critical_sizes`, beside the four plain ones."""
SHORT = 34
"""Smaller sizes are all corners: two tiles of 16 rows and each number of rows beyond."""
ENDS = 16
"""Rows of a segment, its last ones, at which it is judged first."""
SHARE = 16
"""Times that fewer points are judged than of the one draw of a final comparison."""

Kind = Callable[[], np.ndarray]
"""Makes the entries of a table, one after the other."""


def with_other_tables(
    draw: Draw,
    most: int = FINAL_POINTS // SHARE,
    one_axis: bool = False,
    numerics: Numerics = Numerics.STRICT,
) -> Iterator[Draw]:
    """Yield the same problem with tables of every kind on which kernels of ``numerics`` are right,
    one after the other; none if it has no table.

    Each is judged at so many points at ``most``, along one axis alone where that is wanted (as
    :func:`measure.drawing.sampling.sample` takes them).
    """
    if not isinstance(draw, ProgramDraw):
        return
    program = draw.program
    kinds = _kinds_of_tables(program, numerics)
    for number in range(_most(kinds)):
        given = {
            table.name: own[number % len(own)]().astype(table.element.numpy).reshape(table.shape)
            for table, own in kinds
        }
        rows = sample(program, most, np.random.default_rng(number), one_axis)
        rows = rows and Rows({**rows.which, **_telling_rows(program, rows, given)})
        yield replace(draw, inputs={**draw.inputs, **given}, rows=rows)


def tables_of(program: Program) -> int:
    """Count the problems with other tables."""
    return _most(_kinds_of_tables(program))


def _most(kinds: Sequence[tuple[Operand, list[Kind]]]) -> int:
    return max((len(own) for _, own in kinds), default=0)


def critical_sizes(most: int) -> list[int]:
    """Return the sizes from 0 to ``most`` at which code for tiles changes, those first that matter
    most: none and all, small ones, and those about powers of two, which are the sizes of large
    tiles."""
    powers = [2**k for k in range(SHORT.bit_length() - 1, most.bit_length() + 1)]
    about = [size for power in powers for size in (power, power - 1, power + 1)]
    small = list(range(2, SHORT))
    first, middle = small[: SHORT // 2], small[SHORT // 2 :]
    every = (0, most, 1, most - 1, *in_turn([first, about]), *middle)
    return [size for size in dict.fromkeys(every) if 0 <= size <= most]


def _kinds_of_tables(
    program: Program, numerics: Numerics = Numerics.STRICT
) -> list[tuple[Operand, list[Kind]]]:
    found = []
    summed, pointing = _choosing_terms(program), pointers_of(program)
    for table in program.operands:
        if table.name in pointing:
            found.append((table, _pointing_kinds(table, program.extent[pointing[table.name]])))
        elif table.drawn is not None:
            of = _sorted_kinds if table.drawn.sorted else _unsorted_kinds
            chooses = table.name in summed and not table.drawn.sorted
            is_steady = chooses or (table.coded and numerics is Numerics.FAST)
            found.append((table, (_steady_kinds if is_steady else of)(table, table.drawn)))
    return found


def _choosing_terms(program: Program) -> set[str]:
    """Return the arrays that choose factors of a sum's terms, and may choose one for several
    terms."""
    return {
        name
        for stage in program.stages
        if stage.reducer == "sum"
        for factor in factors(stage.body)
        for name, _ in gathered(program, factor, stage.over)
    }


def _sorted_kinds(table: Operand, entries: Entries) -> list[Kind]:
    """Return all rows in the first segment; all in the last; a row each; none in the first and
    last; and segments of many sizes."""
    row, last = np.arange(table.size), entries.below - 1
    packed = _packed(table.size, entries.below)
    return [
        lambda: 0 * row,
        lambda: 0 * row + last,
        lambda: np.minimum(row, last),
        lambda: np.minimum(1 + row * max(last - 1, 1) // table.size, last),
        *(_segments(lengths, entries.below) for lengths in packed),
    ]


def _pointing_kinds(table: Operand, entries: int) -> list[Kind]:
    """Return where rows begin, of rows as :func:`_sorted_kinds` has them."""
    rows = replace(table, shape=(entries,), leading=None)
    starts = np.arange(table.size)

    def begun(kind: Kind) -> Kind:
        return lambda: np.searchsorted(kind(), starts)

    return [begun(kind) for kind in _sorted_kinds(rows, Entries(table.size - 1, sorted=True))]


def _packed(rows: int, segments: int) -> list[list[int]]:
    """Return the lengths of segments that hold so many rows together, in several tables: first
    those that fall, next those that rise, and so on."""
    packed: list[list[int]] = []
    for length in critical_sizes(rows):
        room = (own for own in packed if len(own) < segments - 1 and sum(own) + length <= rows)
        own = next(room, None)
        if own is not None:
            own.append(length)
        elif 0 < length < rows and segments > 1 and len(packed) < MOST:
            packed.append([length])
    return [
        sorted([*own, rows - sum(own)], reverse=number % 2 == 0)
        for number, own in enumerate(packed)
    ]


def _segments(lengths: Sequence[int], below: int) -> Kind:
    """Return the segments of these lengths, and the empty ones between them."""
    return lambda: np.repeat(np.arange(len(lengths)) * below // len(lengths), lengths)


def _steady_kinds(table: Operand, entries: Entries) -> list[Kind]:
    """Return the entries that rise, and that fall."""
    row, last = np.arange(table.size), entries.below - 1
    return [lambda: row % entries.below, lambda: last - row % entries.below]


def _unsorted_kinds(table: Operand, entries: Entries) -> list[Kind]:
    """Return all the least, or the greatest; entries that rise, that fall, and of many sizes."""
    row, last = np.arange(table.size), entries.below - 1
    sizes = np.array(critical_sizes(last))
    tables = min(MOST, ceil(len(sizes) / table.size))
    return [
        lambda: 0 * row,
        lambda: 0 * row + last,
        *_steady_kinds(table, entries),
        *(_in_turn(sizes, row + number * table.size) for number in range(tables)),
    ]


def _in_turn(sizes: np.ndarray, places: np.ndarray) -> Kind:
    return lambda: sizes[places % len(sizes)]


def _telling_rows(
    program: Program, rows: Rows, given: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the values of axes along which tables are read: as many as ``rows`` has, but those
    first at which segments end, or that have an entry of many sizes."""
    found = {}
    for stage in program.stages:
        for read in reads(program, stage):
            for dimension, index in enumerate(read.indices if read.name in given else ()):
                if isinstance(index, AxisValue) and index.name in rows.which:
                    first = _first_rows(program.operand[read.name], given[read.name], dimension)
                    found[index.name] = _preferred(rows.which[index.name], first)
    return found


def _first_rows(table: Operand, entries: np.ndarray, dimension: int) -> np.ndarray:
    if table.drawn is None or not table.drawn.sorted or entries.ndim > 1:
        return np.arange(entries.shape[dimension])
    to_end = np.searchsorted(entries, entries, "right") - 1 - np.arange(entries.size)
    return np.argsort(to_end, kind="stable")[: np.count_nonzero(to_end < ENDS)]


def _preferred(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return as many as there are ``values``, three of four at most from those that come
    ``first``."""
    chosen = first[: values.size - values.size // 4]
    others = values[~np.isin(values, chosen)]
    few = np.linspace(0, others.size - 1, values.size - chosen.size).round().astype(int)
    return np.sort(np.concatenate([chosen, others[few]]))

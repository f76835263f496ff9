"""Patches for a left operand with borders that is read in place: copies for tiles at borders only.

A patch is the part of the padded copy that a tile reads. It lies in the memory of its worker in the
operand's layout, so that one micro-kernel serves tiles of both kinds. A worker holds one patch and
makes another when it comes to another tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.copies.padded import PaddedCopy
from tilewright.spaces.cpu.windows.nest import LEFT, PADDED, Nest, Source, Windows

LEAST_RUN = 16
"""The least neighbours in memory that each step of a patch must copy at once. Copying fewer costs
more than a copy of the whole operand."""


def in_place(view: Windows) -> Windows | None:
    """Return the same product with its left operand in place and patches at its borders.

    Return None if it has no borders, if its loops would be others, or if they jump within a line.
    """
    copy = view.left.padded
    if not isinstance(copy, PaddedCopy) or view.product.segments:
        return None
    factor = view.left.factor
    found = Windows(view.product, Source(factor, None, factor.place.offset, copy), view.right)
    for right_is_packed in (True, False):
        nest = found.nest(right_is_packed)
        if _extents(nest) != _extents(view.nest(right_is_packed)) or not _runs_along(nest):
            return None
    return found


def _extents(nest: Nest) -> list[list[int]]:
    groups = (nest.products, nest.lines, (nest.row, nest.column), nest.runs, nest.depth)
    return [[loop.extent for loop in group] for group in (*groups, nest.multiplied)]


def _runs_along(nest: Nest) -> bool:
    """Tell whether rows and the last loop of the depth stay within a line."""
    last = nest.multiplied[-1]
    stays = all(loop.strides[LEFT] == loop.strides[PADDED] for loop in (nest.row, last))
    return stays and last.strides[LEFT] == 1 and last.extent >= LEAST_RUN


@dataclass(frozen=True)
class Patches:
    """The patches for tiles of up to ``tile_rows`` rows of a view that is :func:`in_place`, and
    blocks of up to ``turns`` turns of the outermost loop that tiles run."""

    nest: Nest
    copy: PaddedCopy
    tile_rows: int
    turns: int

    @property
    def _loops(self) -> list[tuple[int, int, int]]:
        """The loops around the steps of a tile: turns, and the operand's and the copy's stride."""
        *loops, _ = self.nest.multiplied
        extents = [self.turns, *(loop.extent for loop in loops[1:])]
        return [
            (extent, loop.strides[LEFT], loop.strides[PADDED])
            for extent, loop in zip(extents, loops, strict=False)
        ]

    @cached_property
    def within(self) -> int:
        """The elements of a line that the loops around the steps move through."""
        return sum((n - 1) * left for n, left, padded in self._loops if left == padded)

    def span(self, rows: Any) -> Any:
        """Return the length in elements of the part of a line that ``rows`` rows read in one
        turn."""
        steps = self.nest.multiplied[-1].extent if self._loops else self.turns
        return (rows - 1) * self.nest.row.strides[LEFT] + steps

    @property
    def apart(self) -> int | None:
        """The elements from a line of a patch to the next; None if it has one line."""
        return min((left for _, left, padded in self._loops if left != padded), default=None)

    @property
    def elements(self) -> int:
        """The elements of a patch in memory."""
        return int(sum((n - 1) * left for n, left, _ in self._loops) + self.span(self.tile_rows))

    @property
    def copied_bytes(self) -> int:
        """The bytes that are copied for a full patch."""
        runs = prod(extent for extent, _, _ in self._loops)
        return int(runs * self.span(self.tile_rows) * self.copy.operand.element.bytes)

    def function(self, name: str) -> list[str]:
        """Return the C function ``name(from, patch, held, at, rows, turns)`` that locates the
        operand of a tile of ``rows`` rows.

        It returns a place in ``from``, the operand, or ``patch``, which it fills if it must. ``at``
        is the offset in the padded copy of the tile's first turn; ``*held`` is that of the tile
        whose patch there is.
        """
        c_type, (first, last) = C_TYPES[self.copy.operand.dtype], self.copy.held
        at, length = index("at"), self.copy.length
        end = index("end")
        source, skipped, inside = self.copy.source(at // length)
        tests = [
            f"{at % length} >= {first}",
            f"{end % length} + span <= {last}",
            *inside,
            *self.copy.source(end // length)[2],
        ]
        counts = [extent for extent, _, _ in self._loops]
        limits: list[int | str] = ["turns", *counts[1:]] if counts else []
        turns = (
            repeat(*counts).emit(0, self._turn, extents=limits, prefix="t")
            if counts
            else self._turn(())
        )
        return [
            f"static const {c_type} *{name}(",
            f"    const {c_type} *from, {c_type} *patch, long *held,",
            "    long at, long rows, long turns) {",
            f"  const long span = {self._span()}, end = {self._end()};",
            f"  if ({' && '.join(tests)})",
            f"    return from + ({(source + at % length).text} - {skipped + first});",
            "  if (*held == at) return patch;",
            "  *held = at;",
            *indented(turns),
            "  return patch;",
            "}",
        ]

    def _span(self) -> str:
        steps = self.nest.multiplied[-1].extent if self._loops else "turns"
        return f"(rows - 1) * {self.nest.row.strides[LEFT]} + {steps}"

    def _end(self) -> str:
        """Return the offset of the last turn's first element."""
        if not self._loops:
            return "at"
        (_, _, step), *others = self._loops
        rest = sum((n - 1) * padded for n, _, padded in others)
        return (index("at") + index("turns - 1") * step + rest).text

    def _turn(self, at: Sequence[Index]) -> list[str]:
        """Write one turn: what the operand has of its line, between borders."""
        operand, (first, last) = self.copy.operand, self.copy.held
        moves = list(zip(at, self._loops, strict=True))
        to = sum((i * left for i, (_, left, _) in moves), Index())
        here = index("at") + sum((i * padded for i, (_, _, padded) in moves), Index())
        line = index("line")
        source, skipped, tests = self.copy.source(line)
        place = (source + index("place") + index("start")).text
        copied = f"from + ({place} - {skipped + first}), (stop - start) * {operand.element.bytes}"
        return [
            f"{C_TYPES[operand.dtype]} *to = patch + {to};",
            f"const long line = {here // self.copy.length}, place = {here % self.copy.length};",
            f"const int has = {' && '.join(tests) or '1'};",
            f"const long before = tw_least(place < {first} ? {first} - place : 0, span);",
            f"const long start = has ? before : span, most = tw_least({last} - place, span);",
            "const long stop = most > start ? most : start;",
            f"for (long i = 0; i < start; i++) to[i] = {self.copy.value};",
            f"if (stop > start) __builtin_memcpy(to + start, {copied});",
            f"for (long i = stop; i < span; i++) to[i] = {self.copy.value};",
        ]

    def crossing(self, view: Windows) -> int:
        """Count the tiles of one product that cross a border."""
        nest, (first, last) = self.nest, self.copy.held
        lines = np.full(1, view.places[PADDED].constant)
        for loop in nest.lines:
            lines = np.add.outer(lines, np.arange(loop.extent) * loop.strides[PADDED]).ravel()
        reach = sum((n - 1) * padded for n, _, padded in self._loops)
        ends = (lines // self.copy.length, (lines + reach) // self.copy.length)
        inner = self.copy.has_lines(ends[0]) & self.copy.has_lines(ends[1])
        rows = np.arange(0, nest.row.extent, self.tile_rows)
        high = np.minimum(self.tile_rows, nest.row.extent - rows)
        place = int(lines[0]) % self.copy.length + rows * nest.row.strides[PADDED]
        within = (place >= first) & (place + self.within + self.span(high) <= last)
        return lines.size * rows.size - int(inner.sum()) * int(within.sum())


def patches(
    view: Windows, right_is_packed: bool, tile_rows: int, turns: int | None = None
) -> Patches:
    """Return the patches of a view that is :func:`in_place`, for blocks of ``turns`` turns of the
    depth's outermost loop, or of all of it if that is None."""
    nest, copy = view.nest(right_is_packed), view.left.patched
    assert copy is not None
    whole = nest.depth[0].extent
    a_turn = nest.multiplied[0].extent // whole
    return Patches(nest, copy, tile_rows, (turns or whole) * a_turn)

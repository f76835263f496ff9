"""The C of a reduction along kept axes: tiles of outputs, each with its windows.

A tile is some vectors along the fastest kept axis and some turns of another kept loop. Its
accumulators stay in registers, and elements of windows that overlap are read once. Tiles at borders
have code of their own, in which the place decides most tests when code is generated. As task
mappings, for each kept loop:

    spatial(workers) * repeat(share) for the longest, repeat(blocks) for the others

Alternatively, workers share the outermost loop that is reduced over: each stores its accumulators
in a part of the workspace, and then all share the outputs, which are computed from all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from tilewright.spaces.algebra.index import Index, index, total
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import ARRAY_TYPES, buffer_variables, entry_function, worker_function
from tilewright.spaces.cpu.kept.held import Held, held
from tilewright.spaces.cpu.kept.tile import Tile
from tilewright.spaces.cpu.kept.tiling import Tiling
from tilewright.spaces.cpu.vectors.reducers import joined
from tilewright.spaces.derivation.kept.tiles import Segment, moved
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array

Position = Mapping[str, Segment]
"""The blocks that code is for, by the name of each kept loop."""


@dataclass(frozen=True)
class KeptCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order."""

    tiling: Tiling
    operands: Sequence[Array]
    element: str
    streaming: bool
    entry: str

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        workers, sharers = self.tiling.workers, int(self.tiling.sharers)
        if self.tiling.splits:
            passes = {f"{self.entry}_parts": workers, f"{self.entry}_merge": sharers}
            lines = self._function("parts", 1, self._part)
            lines += self._function("merge", sharers, self._merge)
        else:
            passes = {f"{self.entry}_work": sharers}
            lines = self._function("work", sharers, self._whole)
        return "\n".join([*lines, *entry_function(self.entry, passes)]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the parts of all workers."""
        parts = self.tiling.workers * self._part_size if self.tiling.splits else 0
        return dtype(self.element).bytes * parts

    # -- loops -------------------------------------------------------------------------------

    def _function(
        self, name: str, sharers: int, body: Callable[[Tile], Sequence[str]]
    ) -> list[str]:
        """Return the C function ``ENTRY_name``, in which workers share the longest loop."""
        written = {output.array.name for output in self.tiling.view.outputs}
        buffers = buffer_variables(self.operands, self._pointers, written, "restrict ")
        parts = f"{ARRAY_TYPES[self.element]} *restrict parts = call->workspace;"
        lines = [
            *buffers,
            *[parts] * self.tiling.splits,
            *self._loops(self.tiling.order, {}, sharers, body),
            *["tw_flush();"] * self.streaming,
        ]
        return worker_function(f"{self.entry}_{name}", lines)

    def _loops(
        self,
        loops: Sequence[Loop],
        at: Position,
        sharers: int,
        body: Callable[[Tile], Sequence[str]],
    ) -> list[str]:
        """Return the remaining loops, the outermost first, around the ``body`` of a tile."""
        if not loops:
            return list(body(self._tile(at)))
        loop, *rest = loops
        parts = self.tiling.segments(loop)

        def block(segment: Segment, place: Sequence[Index]) -> list[str]:
            start = f"const long {loop.name} = {(place[0] * self.tiling.size(loop)).text};"
            transposed = self._transposed(segment) if loop == self.tiling.view.lane else []
            inner = self._loops(rest, {**at, loop.name: segment}, sharers, body)
            return [start, *transposed, *inner]

        if loop == self.tiling.shared and sharers > 1:
            return self._shared(loop, parts, sharers, block)
        lines: list[str] = []
        for part in parts:
            blocks = repeat(part.count)
            inner = partial(block, part)
            found = blocks.emit(0, inner, base=(part.first,), prefix=f"{loop.name}_")
            lines += C.block(*found)
        return lines

    def _shared(
        self,
        loop: Loop,
        parts: Sequence[Segment],
        sharers: int,
        block: Callable[[Segment, Sequence[Index]], list[str]],
    ) -> list[str]:
        """Return the loop over one worker's blocks, each with the code of its segment."""
        count = parts[-1].end
        mapping = spatial(sharers) * repeat(ceil_div(count, sharers))

        def chosen(place: Sequence[Index]) -> list[str]:
            lines: list[str] = []
            for part in parts:
                known = [index(part.first)] if part.count == 1 else place
                inside = block(part, known)
                test = f"{place[0]} < {part.end}" if part.end < count else ""
                first, *others = C.when(test, inside) if test else C.block(*inside)
                lines += [f"{'else ' if lines else ''}{first}", *others]
            return lines

        worker = index("worker", sharers)
        return mapping.emit(worker, chosen, extents=(count,), prefix=f"{loop.name}_")

    def _transposed(self, segment: Segment) -> list[str]:
        """Return the lines that fill the arrays of transposed operands for a block of lanes."""
        lines = []
        taps = [loop.name for loop in self.tiling.view.taps]
        for found in self._held.values():
            first = moved(found.access.offset, {}, taps)
            where = f"{self._pointers[found.access.array.name]} + {first}"
            lines += found.declared(where, segment.size)
        return lines

    @cached_property
    def _held(self) -> Mapping[Read, Held]:
        return held(self.tiling)

    @cached_property
    def _pointers(self) -> Mapping[str, str]:
        return {operand.name: f"x{i}" for i, operand in enumerate(self.operands)}

    def _tile(self, at: Position) -> Tile:
        ranges = {loop.name: (0, loop.extent - 1) for loop in self.tiling.view.taps}
        for loop in self.tiling.view.kept:
            segment, size = at[loop.name], self.tiling.size(loop)
            ranges[loop.name] = (segment.first * size, (segment.end - 1) * size)
        across = self.tiling.across
        return Tile(
            view=self.tiling.view,
            lanes=self.tiling.lanes,
            across=across,
            turns=at[across.name].size if across else 1,
            columns=at[self.tiling.view.lane.name].size,
            ranges=ranges,
            written_out=self.tiling.written_out,
            pointers=self._pointers,
            held=self._held,
        )

    # -- a tile ------------------------------------------------------------------------------

    def _whole(self, tile: Tile) -> list[str]:
        taps = tile.in_blocks(self._taps(self.tiling.rolled, tile))
        return [*tile.declared(), *taps, *tile.outputs(self.streaming)]

    def _taps(self, rolled: Sequence[Loop], tile: Tile) -> list[str]:
        """Return the loops over taps that are not written out, around the terms of the others."""
        counts = [loop.extent for loop in rolled]
        names = [loop.name for loop in rolled]

        def body(at: Sequence[Index]) -> list[str]:
            starts = zip(names, at, strict=True)
            return [*(f"const long {name} = {i.text};" for name, i in starts), *turn]

        turn = [*tile.terms(), *tile.turn_ends()]
        if not counts:
            return turn
        return repeat(*counts).emit(0, body, prefix="k")

    # -- parts -------------------------------------------------------------------------------

    @cached_property
    def _part_size(self) -> int:
        """The elements of the workspace that one worker has: an accumulator for each output, in
        whole vectors."""
        *outer, lane = (loop.extent for loop in self.tiling.view.kept)
        return prod(outer) * round_up(lane, self.tiling.lanes)

    def _part(self, tile: Tile) -> list[str]:
        """Return a worker's share of the outermost loop, whose accumulators are stored in its
        part."""
        workers = self.tiling.workers
        outer, *inner = self.tiling.rolled
        share = spatial(workers) * repeat(ceil_div(outer.extent, workers))

        def body(at: Sequence[Index]) -> list[str]:
            return [f"const long {outer.name} = {at[0].text};", *self._taps(inner, tile)]

        worker = index("worker", workers)
        lines = share.emit(worker, body, extents=(outer.extent,), prefix="w")
        lines = tile.in_blocks(lines)
        stores = [
            f"tw_store_{self.element}({self._place(tile, place, 'worker')}, {tile.state(place)});"
            for place in tile.places
        ]
        return [*tile.declared(), *lines, *stores]

    def _merge(self, tile: Tile) -> list[str]:
        """Return the lines that join the accumulators of all parts, and store the outputs."""
        lines = []
        for place in tile.places:
            part = f"tw_load_{self.element}({self._place(tile, place, 'part')})"
            state = tile.state(place)
            lines.append(f"{state} = {joined(self.tiling.view.reducer, state, part)};")
        merged = C.loop("part", self.tiling.workers, lines)
        return [*tile.declared(), *merged, *tile.outputs(self.streaming)]

    def _place(self, tile: Tile, place: tuple[int, int], part: str) -> str:
        steps, step = [], 1
        for loop in reversed(self.tiling.view.kept):
            steps.append((loop.index, step))
            step *= (
                loop.extent
                if loop != self.tiling.view.lane
                else round_up(loop.extent, self.tiling.lanes)
            )
        offset = moved(total(steps), tile.by(place))
        return f"parts + {part} * {self._part_size}L + {offset}"

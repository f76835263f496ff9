"""Resources of rows schedules, for whole populations: registers, shared memory, bytes in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.block_sums import BLOCK, FEW
from tilewright.spaces.cuda.residency import BlockResources
from tilewright.spaces.cuda.rows.merging import SLOT, exchange_bytes
from tilewright.spaces.cuda.rows.source import PAIRED, widest
from tilewright.spaces.cuda.rows.tile import RowTile
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.derivation.rows.use import Use
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array

SUM_ALIGNMENT = 8
"""Elements of which the run of memory of one column sum is a multiple."""
MOST_PART_ROWS = BLOCK * FEW
"""Rows of which one thread adds up elements at most: a few blocks, which are added plainly."""


def partial_elements(rows: Rows) -> int:
    """Return the elements of memory that a part of one column sum takes."""
    return round_up(rows.column_count, SUM_ALIGNMENT)


def partial_limit(target: CudaTarget) -> int:
    """Return the most bytes of the sums of all parts."""
    return target.l2_bytes // 2


@dataclass(frozen=True)
class RowSizes(RowTile, BlockResources):
    """Extents and resources of schedules of ``rows``, computed in a type of ``real`` bytes."""

    rows: Rows
    real: int

    @cached_property
    def plain(self) -> Use:
        """The sweeps with a pass for each reduction that waits for another."""
        return Use(self.rows, self.rows.plain)

    @cached_property
    def online(self) -> Use:
        """The sweeps with as few passes as possible."""
        return Use(self.rows, self.rows.online)

    # -- arrays --------------------------------------------------------------------------------

    @cached_property
    def streams(self) -> list[tuple[Array, RowAddress]]:
        """The arrays, outputs too, that differ from element to element and from row to row."""
        operand = self.rows.program.operand
        reads = [(operand[r.name], self.rows.places[r]) for r in self.plain.elements]
        written = [(o.array, o.place) for o in self.rows.outputs]
        return [(a, p) for a, p in (*reads, *written) if p.by_column and self._is_stream(p)]

    @cached_property
    def widest(self) -> int:
        """Elements of the widest vectors: at most 16 bytes of each stream."""
        operand = self.rows.program.operand
        beside = [(operand[r.name], self.rows.places[r]) for r in self.plain.elements]
        written = [(o.array, o.place) for o in self.rows.outputs if o.place.by_column]
        sides = [(a, p) for a, p in (*beside, *written) if p.columns[-1] == 1]
        widths = [widest(p, self.rows.columns) for _, p in sides]
        bytes = [16 // a.element.bytes for a, p in sides if self._is_stream(p)]
        return min([*widths, *bytes], default=1)

    def _is_stream(self, place: RowAddress) -> bool:
        """Return true if each row has elements of its own at a place."""
        return place.by_row or self.rows.row_count == 1

    @cached_property
    def lies_along_rows(self) -> bool:
        """True if neighbours in memory, in the largest array, belong to different rows."""
        largest = max(self.streams, key=lambda stream: stream[0].size, default=None)
        return largest is not None and largest[1].columns[-1] != 1

    @property
    def spreads(self) -> bool:
        """True if there is work for many threads whatever their number in a row."""
        return self.rows.is_map or self.lies_along_rows

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of an element of the largest array."""
        largest = max(self.streams, key=lambda stream: stream[0].size, default=None)
        return largest[0].element.bytes if largest else self.real

    def _words(self, reads: tuple[Read, ...], c: Any) -> Any:
        """Return the 32-bit registers of one vector of each of ``reads``, for all rows of a
        thread."""
        total: Any = 0
        for read in reads:
            array = self.rows.program.operand[read.name]
            paired = (array.dtype in PAIRED) & (c["vector"] > 1)
            single = c["vector"] * max(1, array.element.bytes // 4)
            total = total + np.where(paired, single // 2, single) * self._rows_of(read, c)
        return total

    @cached_property
    def holds_pairs(self) -> bool:
        """True if two elements that stay on chip share a register."""
        operand = self.rows.program.operand
        names = {operand[r.name].dtype for r in self.plain.repeated}
        return self.widest > 1 and not names.isdisjoint(PAIRED)

    @cached_property
    def common(self) -> tuple[Read, ...]:
        """The reads that differ along a row and are the same for all rows."""
        return tuple(read for read in self.plain.elements if not self.rows.places[read].by_row)

    def keeps_common(self, c: Any) -> Any:
        """Return true where operands that all rows share stay in registers for all tiles."""
        return c["row_invariants"] == "kept"

    def _own(self, reads: tuple[Read, ...]) -> tuple[Read, ...]:
        """Return those of ``reads`` of which each row has its own."""
        return tuple(read for read in reads if self.rows.places[read].by_row)

    def _rows_of(self, read: Read, c: Any) -> Any:
        return c["thread_rows"] if self.rows.places[read].by_row else 1

    # -- sums along columns --------------------------------------------------------------------

    def walks(self, target: CudaTarget, c: Any) -> Any:
        """Return the clusters of blocks that go over tiles side by side."""
        room = np.maximum(target.multiprocessors * c["blocks_per_sm"] // c["cluster"], 1)
        persistent = c["tile_scheduler"] == "persistent"
        return np.where(persistent, np.minimum(self.tiles(c), room), self.tiles(c))

    def part_rows(self, target: CudaTarget, c: Any) -> Any:
        """Return the rows of which one thread adds up elements."""
        return ceil_div(self.tiles(c), self.walks(target, c)) * c["thread_rows"]

    def partial_bytes(self, target: CudaTarget, c: Any) -> Any:
        """Return the bytes of memory of the sums of all parts."""
        each = len(self.rows.summed) * partial_elements(self.rows) * self.real
        return self.walks(target, c) * c["block_rows"] * each

    def sum_words(self, c: Any) -> Any:
        """Return the registers of the column sums of a thread, with those of blocks before."""
        each = 2 * len(self.rows.summed) * (self.real // 4)
        return each * self.turns(c) * c["vector"]

    # -- resources -----------------------------------------------------------------------------

    def held_words(self, c: Any) -> Any:
        """Return the registers of elements that stay between sweeps."""
        own = self._own(self.plain.repeated)
        shared = tuple(read for read in self.plain.repeated if read not in own)
        kept = self._words(own, c) + np.where(self.keeps_common(c), 0, self._words(shared, c))
        words = np.where(c["prefetch"] == 1, self._words(self.plain.elements, c), kept)
        return np.where(c["row_storage"] == "registers", words, 0) * self.turns(c)

    def common_words(self, c: Any) -> Any:
        """Return the registers of elements that stay for all tiles."""
        return np.where(self.keeps_common(c), self._words(self.common, c) * self.turns(c), 0)

    def flight_words(self, c: Any) -> Any:
        """Return the registers of the elements that a step reads at once."""
        own, every = self._own(self.plain.elements), self.plain.elements
        fresh = np.where(self.keeps_common(c), self._words(own, c), self._words(every, c))
        return np.where(c["row_storage"] == "registers", 0, fresh * c["unroll"])

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers with which a thread does not spill.

        Calibrated on what NVRTC 13.5 needs: elements held between sweeps take a fourth more than
        their size.
        """
        variables = self.variables * c["thread_rows"] * (self.real // 4)
        numbers = c["vector"] * (self.real // 4) // 2
        pointers = 2 * c["thread_rows"] * len(self.streams)
        held = self.held_words(c) * 5 // 4 + self.common_words(c)
        fixed = variables + numbers + pointers + 8
        return held + self.flight_words(c) + self.sum_words(c) + fixed

    @cached_property
    def variables(self) -> int:
        """Variables of a row: results, and the states of the pass that has most."""
        results = sum(map(len, self.plain.passes))
        return results + max(
            map(self._states, (*self.plain.passes, *self.online.passes)), default=0
        )

    def _states(self, pass_: Any) -> int:
        return sum(1 + REDUCERS[r.reducer].argument for r in pass_)

    def slot_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory that merges take."""
        wide = np.where(c["row_threads"] > WARP, c["row_threads"] // WARP, 0)
        if self.lies_along_rows:
            wide = np.where(c["row_threads"] > 1, self.threads(c), 0)

        def bytes(passes: Sequence[Any]) -> Any:
            counts = [self._states(pass_) * c["thread_rows"] for pass_ in passes]
            sent = sum(exchange_bytes(count, c["cluster"]) for count in counts)
            return sum(counts) * wide * SLOT + np.where(c["cluster"] > 1, sent, 0)

        online = c["passes"] == "online"
        return np.where(online, bytes(self.online.passes), bytes(self.plain.passes))

    def held_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory for the elements of one tile."""
        bytes: Any = 0
        for read in self.plain.repeated:
            size = self.rows.program.operand[read.name].element.bytes
            stays = self.keeps_common(c) if read in self.common else False
            bytes = bytes + np.where(stays, 0, size * self._rows_of(read, c))
        whole = bytes * self.steps(c) * self.at_once(c) * c["vector"] * self.threads(c)
        return np.where(self.copied(c), whole, 0)

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block."""
        return self.held_bytes(c) * self.buffers(c) + self.slot_bytes(c)

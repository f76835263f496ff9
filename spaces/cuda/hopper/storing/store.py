"""The end of a Hopper tile: sums are finished and written, a chunk of columns at a time.

Either each thread stores the elements that it holds, or they go through staging buffers in shared
memory, which TMA stores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.blocks.finish import Finish
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.hopper.storing.filling import BufferFill
from tilewright.spaces.cuda.hopper.storing.staging import StagingBuffer
from tilewright.spaces.cuda.hopper.storing.sums import GroupSums, pairs_of_warp
from tilewright.spaces.cuda.hopper.tile import BLOCK, WIDEST_SWIZZLE
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.workloads.matmul import Operand

CHUNK = 64
"""The most columns of a block that are finished at a time."""


@dataclass(frozen=True)
class TileStore:
    """The store of ``row_blocks`` blocks of 64 x ``columns`` sums, see :class:`GroupSums`.

    Lines read ``thread`` and ``group``, the numbers in the warpgroup and of it, and the position of
    the first sum in the output, ``row0`` and ``column0``. If the output is staged, they also read
    ``staging``, the address of the warpgroup's ``buffers`` buffers, and ``turn``, the one to use
    next. If an operand is ``fetched``, each chunk has a buffer of its own, and in C ``fetched`` is
    the address of a barrier and ``fetched_phase`` its phase.
    """

    finish: Finish
    swapped: bool
    row_blocks: int
    columns: int
    buffers: int
    fetched: Operand | None = None

    @property
    def is_staged(self) -> bool:
        """True if the output passes through shared memory."""
        return self.buffers > 0

    @property
    def chunk(self) -> int:
        """Columns of a block that are finished at a time."""
        most = (
            CHUNK
            if self.swapped
            else min(CHUNK, WIDEST_SWIZZLE // self.finish.output.element.bytes)
        )
        return gcd(self.columns, most)

    @property
    def tensor_maps(self) -> dict[str, TensorMapSpec]:
        """The maps of what TMA stores and fetches, by the names of the kernel's parameters."""
        buffers = self._buffers if self.is_staged else ()
        maps = {buffer.map_name: buffer.tensor_map for buffer in buffers}
        return maps | ({"fetched_map": self._buffer.fetched_map} if self.fetched else {})

    @cached_property
    def _sums(self) -> GroupSums:
        return GroupSums(self.finish, self.swapped, self.columns, self.fetched is not None)

    @cached_property
    def _buffers(self) -> tuple[StagingBuffer, ...]:
        """A buffer as it is for each output."""
        about = (self.finish, self.swapped, self.chunk, self.fetched)
        return tuple(StagingBuffer(*about, i) for i in range(len(self.finish.written)))

    @property
    def _buffer(self) -> StagingBuffer:
        return self._buffers[0]

    # -- lines -------------------------------------------------------------------------------------

    def start_lines(self, barriers: str, groups: int) -> list[str]:
        """Print how fetches' barriers are initialised, one for each of ``groups`` warpgroups."""
        if not self.fetched:
            return []
        return CUDA.loop("i", groups, f"tw::mbarrier_init({barriers} + 8 * i, 1);")

    def fetch_lines(self) -> list[str]:
        """Print how a tile's fetches are issued, once TMA has read the buffers' old contents."""
        if not self.fetched:
            return []
        chunks = product(range(self.row_blocks), range(self.columns // self.chunk))
        loads = [
            line
            for number, (m, n) in enumerate(chunks)
            for line in self._buffer.receive(Index() + m * BLOCK, Index() + n * self.chunk, number)
        ]
        expect = f"tw::mbarrier_arrive_expect(fetched, {self.buffers * self._buffer.bytes});"
        issued = CUDA.when("thread == 0", ["tw::tma_wait_read<0>();", expect, *loads])
        return [*issued, "tw::sync_warp();"]

    def lines(self) -> list[str]:
        """Print how all blocks are finished and written, a chunk at a time."""
        arrived = ["tw::mbarrier_wait(fetched, fetched_phase);", "fetched_phase ^= 1;"]

        def body(indices: tuple[Index, ...]) -> list[str]:
            m, n = indices[0] * BLOCK, indices[1] * self.chunk
            write = self._staged_chunk if self.is_staged else self._direct_chunk
            # opaque: addresses and loads of a chunk are not worth registers before its turn
            thread = f"const int thread = tw::opaque((int)threadIdx.x % {2 * BLOCK});"
            return CUDA.block(thread, *write(m, n))

        chunks = unrolled(repeat(self.row_blocks, self.columns // self.chunk), 0, body, "c")
        return [*(arrived if self.fetched else []), *chunks]

    def last_lines(self) -> list[str]:
        """Print how a block waits, before it ends, until TMA has read its shared memory."""
        return ["if (thread == 0) tw::tma_wait_read<0>();"] if self.is_staged else []

    # -- directly ----------------------------------------------------------------------------------

    def _direct_chunk(self, m: Index, n: Index) -> list[str]:
        def body(indices: tuple[Index, ...]) -> list[str]:
            at = m + indices[0], n + indices[1] * 2
            sums, row, column = self._sums.pair(*at), index("row0"), index("column0")
            if not self.swapped:
                others = self._sums.others(*at)
                return self.finish.store(row + at[0], column + at[1], sums, others)
            return [
                line
                for e, total in enumerate(sums)
                for line in self.finish.store(row + at[1] + e, column + at[0], [total])
            ]

        return unrolled(spatial(4, 1) * pairs_of_warp(self.chunk), "thread", body, "s")

    # -- through shared memory ---------------------------------------------------------------------

    def _staged_chunk(self, m: Index, n: Index) -> list[str]:
        parts = [self._staged(buffer, m, n) for buffer in self._buffers]
        if len(parts) > 1:
            parts = [CUDA.block(*part) for part in parts]
        return ["const int lane = thread % 32;", *(line for part in parts for line in part)]

    def _staged(self, buffer: StagingBuffer, m: Index, n: Index) -> list[str]:
        """Print how a chunk of one output leaves through the next buffer."""
        step = f"turn = turn == {self.buffers - 1} ? 0 : turn + 1;"
        sync = f"tw::sync_named(1 + group, {2 * BLOCK});"
        # the buffer is free once at most the stores of the other buffers are pending
        free = [f"if (thread == 0) tw::tma_wait_read<{self.buffers - 1}>();", sync]
        in_segments = segments_of(self.finish.product) is not None
        sums = replace(self._sums, number=buffer.number)
        leaving = self._leave(buffer, m, n) if in_segments else self._commit(buffer.send(m, n))
        return [
            f"const u32 buffer = staging + turn * {buffer.bytes};",
            *([] if self.fetched else free),
            *BufferFill(sums, buffer).lines(m, n),
            # TMA reads by the asynchronous proxy what threads wrote
            "tw::fence_async();",
            sync,
            *leaving,
            step,
        ]

    def _commit(self, send: list[str]) -> list[str]:
        """Print how one thread sends a buffer; even if it sends nothing, it commits a bulk
        group."""
        return CUDA.when("thread == 0", [*send, "tw::tma_commit();"])

    def _leave(self, buffer: StagingBuffer, m: Index, n: Index) -> list[str]:
        """Print how a buffer leaves: by TMA if all its rows are of the segment, else row by row."""
        rows, _ = buffer.shape
        row = index("row0") + (n if self.swapped else m)
        column = index("column0") + (m if self.swapped else n)
        return [
            f"const bool whole_rows = {(row + rows).text} <= end_row;",
            *self._commit(CUDA.when("whole_rows", buffer.send(m, n))),
            *CUDA.when("!whole_rows", buffer.store_rows(row, column)),
        ]

"""Split-K: several blocks share the depth of a tile; the last one to come adds up their sums.

Each thread's sums travel as they lie in its registers: element ``i`` of thread ``t`` is at ``i *
threads + t``, so that accesses are coalesced whatever the tile's shape. A block that is done takes
a ticket; the one with the last ticket finds everybody's sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.layout import Layout, row_major, strided
from tilewright.spaces.cuda.blocks.last_to_come import LastToCome
from tilewright.spaces.cuda.blocks.tile_grid import TileGrid
from tilewright.spaces.kernels.body import Body

WAYS = ("store", "add")
"""``store``: each block stores its sums, the last adds them up in order. ``add``: atomics."""

_ALIGNMENT = 256


@dataclass(frozen=True)
class PartialSums:
    """The exchange, in one of :data:`WAYS`, of sums of the blocks of ``grid``.

    Each of ``threads`` threads of a block has ``count`` sums of C type ``kind``; ``sum`` is C text
    of number ``i``.
    """

    grid: TileGrid
    threads: int
    count: int
    kind: str
    way: str
    sum: str

    @property
    def is_needed(self) -> bool:
        """True if the depth is split."""
        return self.grid.splits > 1

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the workspace: a ticket for each tile, then the sums."""
        return self._tickets_bytes + self._layout.size * self._bytes if self.is_needed else 0

    @property
    def zeroed_bytes(self) -> int:
        """Bytes of the workspace that must be zero before the kernel, and are afterwards."""
        if not self.is_needed:
            return 0
        return self.workspace_bytes if self.way == "add" else self._tickets_bytes

    def write(self, body: Body) -> None:
        """Write the exchange; only threads of the last block of a tile go on, with the whole sums.

        It overwrites the first word of shared memory, at the address ``shared``.
        """
        if not self.is_needed:
            return
        body.let("const i64", "tile", self.grid.tile)
        ticket = body.let("u32 *", "ticket", "(u32 *)workspace + tile")
        sums = f"({self.kind} *)(workspace + {self._tickets_bytes})"
        body.let(f"{self.kind} *", "exchanged", sums)
        self._leave(body)
        last = LastToCome(ticket, "shared")
        last.wait(body, self.grid.splits)
        self._collect(body)
        last.reset(body)

    def _leave(self, body: Body) -> None:
        """Write how a block's sums go where the last block finds them."""
        if self.way == "add":
            with self._each(body) as mine:
                body.call("tw::atomic_add", mine, self.sum)
            return
        with body.block():
            body.let("const i64", "part", "blockIdx.y")
            with self._each(body) as mine:
                body.call("tw::store_global", mine, self.sum)

    def _collect(self, body: Body) -> None:
        """Write how the whole sums are read; sums that are stored apart are added in order."""
        if self.way == "add":
            with self._each(body) as mine:
                body.assign(self.sum, f"tw::load_global({mine})")
            with self._each(body) as mine:
                body.call("tw::store_global", mine, f"({self.kind})0")
            return
        with self._each(body):
            body.assign(self.sum, 0)
        with body.loop("i64", "part", self.grid.splits, unroll=1), self._each(body) as mine:
            body.assign(self.sum, f"tw::load_global({mine})", "+")

    @contextmanager
    def _each(self, body: Body) -> Iterator[str]:
        """Write a loop over the sums ``i`` of a thread, and give the place of each in C."""
        thread = index("(int)threadIdx.x", self.threads)
        with body.loop("int", "i", self.count, unroll=True, brief=True) as i:
            place = self._layout.index([index("tile"), index("part"), i, thread])
            yield f"exchanged + {place.text}"

    @property
    def _layout(self) -> Layout:
        """The place of a sum by (tile, part, number in the thread, thread)."""
        shape = (self.grid.tiles, self.grid.splits, self.count, self.threads)
        if self.way == "store":
            return row_major(*shape)
        per_tile = self.count * self.threads
        return strided(shape, (per_tile, 0, self.threads, 1))

    @property
    def _tickets_bytes(self) -> int:
        tickets = 4 * self.grid.tiles
        return -(-tickets // _ALIGNMENT) * _ALIGNMENT

    @property
    def _bytes(self) -> int:
        return 8 if self.kind == "double" else 4

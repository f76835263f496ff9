"""Several blocks share the depth of one tile; the last one to come puts their sums together.

Each thread's sums travel as they lie in its registers: element ``i`` of thread ``t`` is at
``i * threads + t``, so that accesses are side by side whatever the tile's shape. A block that is
done takes a ticket; the one with the last ticket finds everybody's sums.
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
    """``count`` sums of C type ``kind`` in each of ``threads`` threads of each block of ``grid``,
    number ``i`` of which is ``sum`` in C;
    exchanged in one of :data:`WAYS`."""

    grid: TileGrid
    threads: int
    count: int
    kind: str
    way: str
    sum: str

    @property
    def is_needed(self) -> bool:
        """Whether there is more than one part."""
        return self.grid.splits > 1

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory: a ticket for each tile, then the sums."""
        return self._tickets_bytes + self._layout.size * self._bytes if self.is_needed else 0

    @property
    def zeroed_bytes(self) -> int:
        """How much of it must be zero before the kernel, and is afterwards."""
        if not self.is_needed:
            return 0
        return self.workspace_bytes if self.way == "add" else self._tickets_bytes

    def write(self, body: Body) -> None:
        """Exchange sums; only threads of the last block of a tile go on, with the whole sums.

        Overwrites the first word of shared memory, at the address ``shared``.
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
        """Put the block's sums where the last block finds them."""
        if self.way == "add":
            with self._each(body) as mine:
                body.call("tw::atomic_add", mine, self.sum)
            return
        with body.block():
            body.let("const i64", "part", "blockIdx.y")
            with self._each(body) as mine:
                body.call("tw::store_global", mine, self.sum)

    def _collect(self, body: Body) -> None:
        """Take the whole sums, in the order of the parts where these lie apart."""
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
        """Write a statement for each sum ``i`` of a thread, and give its place in C."""
        thread = index("(int)threadIdx.x", self.threads)
        with body.loop("int", "i", self.count, unroll=True, brief=True) as i:
            place = self._layout.index([index("tile"), index("part"), i, thread])
            yield f"exchanged + {place.text}"

    @property
    def _layout(self) -> Layout:
        """Where the sum of (tile, part, index in the thread, thread) lies."""
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

"""Several blocks share the depth of one tile; the last one to come puts their sums together.

Each thread's sums travel as they lie in its registers: element ``i`` of thread ``t`` is at
``i * threads + t``, so that accesses are side by side whatever the tile's shape. A block that is
done takes a ticket; the one with the last ticket finds everybody's sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.layout import Layout, row_major, strided
from tilewright.spaces.cuda.blocks.tile_grid import TileGrid

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

    def lines(self) -> list[str]:
        """Exchange sums; only threads of the last block of a tile go on, with the whole sums.

        Overwrites the first word of shared memory, at the address ``shared``.
        """
        if not self.is_needed:
            return []
        last = self.grid.splits - 1
        thread = index("(int)threadIdx.x", self.threads)
        place = self._layout.index([index("tile"), index("part"), index("i"), thread]).text
        mine = f"exchanged + {place}"
        if self.way == "store":
            put = f"tw::store_global({mine}, {self.sum});"
            collect = [
                *self._each(f"{self.sum} = 0;"),
                "#pragma unroll 1",
                f"for (i64 part = 0; part <= {last}; part++) {{",
                *(f"  {line}" for line in self._each(f"{self.sum} += tw::load_global({mine});")),
                "}",
            ]
        else:
            put = f"tw::atomic_add({mine}, {self.sum});"
            collect = [
                *self._each(f"{self.sum} = tw::load_global({mine});"),
                *self._each(f"tw::store_global({mine}, ({self.kind})0);"),
            ]
        return [
            f"const i64 tile = {self.grid.tile};",
            "u32 *ticket = (u32 *)workspace + tile;",
            f"{self.kind} *exchanged = ({self.kind} *)(workspace + {self._tickets_bytes});",
            "{",
            "  const i64 part = blockIdx.y;",
            *(f"  {line}" for line in self._each(put)),
            "}",
            "tw::fence_global();",
            "tw::sync_block();",
            "if (threadIdx.x == 0) tw::store_shared(shared, tw::take_ticket(ticket));",
            "tw::sync_block();",
            f"if (tw::load_shared<u32>(shared) != {last}) return;",
            "tw::fence_global();",
            *collect,
            "if (threadIdx.x == 0) tw::store_global(ticket, 0u);",
        ]

    def _each(self, line: str) -> list[str]:
        """``line`` for each sum ``i`` of a thread."""
        return ["#pragma unroll", f"for (int i = 0; i < {self.count}; i++) {line}"]

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

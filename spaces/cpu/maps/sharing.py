"""The functions of a map's kernel that share its tiles among workers and call for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cpu.abi import entry_function, open_share, worker_function
from tilewright.spaces.cpu.maps.names import Names
from tilewright.spaces.cpu.maps.tiling import Tiling
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class Sharing:
    """Tiles shared by workers, each of which has room for its transposed copies."""

    names: Names
    entry: str

    @property
    def tiling(self) -> Tiling:
        """The tiles."""
        return self.names.tiling

    @property
    def values(self) -> Mapping[str, Value]:
        """The decisions."""
        return self.names.values

    @property
    def lines(self) -> list[str]:
        """The C text of a worker's function and of the entry."""
        return [*self._worker(), *self._entry()]

    @property
    def _counts(self) -> list[int]:
        """The turns of the outer loops, then the most tiles along rows and columns."""
        return [int(count) for count in self.tiling.counts]

    @property
    def _open_rank(self) -> int | None:
        """The rank of these whose count calls decide; None if there is none."""
        loops = (*self.names.plane.outer, self.names.plane.rows, self.names.plane.columns)
        return next((r for r, loop in enumerate(loops) if self.names.is_open(loop)), None)

    @property
    def _open_count(self) -> str:
        """The C expression of the count that a call has along that rank."""
        tile = (int(self.tiling.tile_rows), int(self.tiling.tile_columns))
        turns = self.names.extent(self.names.plane.view.loops[0])
        step = (*(1 for _ in self.names.plane.outer), *tile)[self._open_rank or 0]
        return turns if step == 1 else f"({turns} + {step - 1}) / {step}"

    @property
    def _mapping(self) -> TaskMapping:
        """The task mapping of workers along the longest rank, and of the tiles of each.

        If calls decide the count along that rank, it has no workers: these compute their own
        shares.
        """
        counts, workers = self._counts, int(self.values["workers"])
        shared = int(self.tiling.shared_rank)
        ranks = range(len(counts))
        shares = [int(self.tiling.share) if r == shared else n for r, n in enumerate(counts)]
        *outer, row, column = ranks
        inner = (column, row) if self.values["order"] == ROWS else (row, column)
        tiles = repeat(*shares, order=(*outer, *inner))
        if shared == self._open_rank:
            return tiles
        return spatial(*(workers if r == shared else 1 for r in ranks)) * tiles

    def _tasks(self, task: Callable[[Sequence[Index]], list[str]]) -> list[str]:
        """Return the C lines that do a ``task`` for each tile of a worker."""
        counts: list[int | str] = [*self._counts]
        first: list[int | str] = [0] * len(counts)
        workers, rank = int(self.values["workers"]), self._open_rank
        lines, worker = [], index("worker", workers)
        if rank is not None and rank == self.tiling.shared_rank:
            lines, worker = open_share(self._open_count, workers), index(0)
            first[rank], counts[rank] = "begin", "end"
        elif rank is not None:
            lines = [f"const long items = {self._open_count};"]
            counts[rank] = "items"
        tiles = self._mapping.emit(worker, task, extents=counts, base=first, prefix="t")
        return [*lines, *tiles]

    def _worker(self) -> list[str]:
        worker = index("worker", int(self.values["workers"]))
        bytes = int(self.tiling.scratch_bytes)
        scratch = f"(void *)((char *)call->workspace + {worker * bytes})" if bytes else "0"
        ahead = bool(self.tiling.transposes_ahead)
        lines = [
            f"{self.names.held} *turned = {scratch};",
            *([f"long at[2][{len(self.names.starts)}], tile = 0;"] if ahead else []),
            *self._tasks(self._next_task if ahead else self._task),
            *([self._written("0, 0")] if ahead else []),
            *(["tw_flush();"] if self.values["streaming_stores"] else []),
        ]
        return worker_function(f"{self.entry}_work", lines)

    def _starts(self, task: Sequence[Index]) -> list[str]:
        """Return the indices at which a tile begins, as C expressions."""
        *outer, row, column = task
        starts = [*outer, column * int(self.tiling.tile_columns)]
        return [(row * int(self.tiling.tile_rows)).text, *(start.text for start in starts)]

    def _task(self, task: Sequence[Index]) -> list[str]:
        arguments = ", ".join(["call", "turned", *self._starts(task)])
        return [f"{self.entry}_tile({arguments});"]

    def _next_task(self, task: Sequence[Index]) -> list[str]:
        """Write one tile and transpose for the next one; the two buffers swap roles each time."""
        return [
            "long *now = at[tile & 1];",
            *(f"now[{i}] = {start};" for i, start in enumerate(self._starts(task))),
            self._written(f"{self._place('tile & 1')}, now"),
            "tile++;",
        ]

    def _written(self, ahead: str) -> str:
        """Return the C statement that writes the tile before, if there is one, and transposes
        ``ahead``."""
        before = f"{self._place('~tile & 1')}, tile ? at[~tile & 1] : 0"
        return f"{self.entry}_tile(call, {before}, {ahead});"

    def _place(self, which: str) -> str:
        return f"turned + ({which}) * {int(self.tiling.scratch_elements)}"

    def _entry(self) -> list[str]:
        return entry_function(self.entry, {f"{self.entry}_work": int(self.values["workers"])})

"""Who computes which tiles of a map: the functions of its kernel that call for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import entry_function
from tilewright.spaces.cpu.maps.names import Names
from tilewright.spaces.cpu.maps.tiling import Tiling
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class Sharing:
    """Tiles shared by workers, each with room for what it transposes."""

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
        """The function of a worker, and the entry."""
        return [*self._worker(), *self._entry()]

    @property
    def _mapping(self) -> TaskMapping:
        """Workers along the longest rank, and what each does of it."""
        counts = [int(count) for count in self.tiling.counts]
        shared, workers = int(self.tiling.shared_rank), int(self.values["workers"])
        ranks = range(len(counts))
        shares = [int(self.tiling.share) if r == shared else n for r, n in enumerate(counts)]
        *outer, row, column = ranks
        inner = (column, row) if self.values["order"] == ROWS else (row, column)
        apart = spatial(*(workers if r == shared else 1 for r in ranks))
        return apart * repeat(*shares, order=(*outer, *inner))

    def _worker(self) -> list[str]:
        worker = index("worker", int(self.values["workers"]))
        counts = [int(count) for count in self.tiling.counts]
        scratch = int(self.tiling.scratch_bytes)
        turned = f"(void *)((char *)call->workspace + {worker * scratch})" if scratch else "0"
        ahead = bool(self.tiling.turns_ahead)
        task = self._next_task if ahead else self._task
        return [
            f"static void {self.entry}_work(void *context, int worker) {{",
            "  const tw_call *call = context;",
            f"  {self.names.held} *turned = {turned};",
            *([f"  long at[2][{len(self.names.starts)}], tile = 0;"] if ahead else []),
            *indented(self._mapping.emit(worker, task, extents=counts, prefix="t")),
            *([f"  {self._written('0, 0')}"] if ahead else []),
            *(["  tw_flush();"] if self.values["streaming_stores"] else []),
            "}",
        ]

    def _starts(self, task: Sequence[Index]) -> list[str]:
        """Where a tile begins, as C expressions."""
        *outer, row, column = task
        starts = [*outer, column * int(self.tiling.tile_columns)]
        return [(row * int(self.tiling.tile_rows)).text, *(start.text for start in starts)]

    def _task(self, task: Sequence[Index]) -> list[str]:
        arguments = ", ".join(["call", "turned", *self._starts(task)])
        return [f"{self.entry}_tile({arguments});"]

    def _next_task(self, task: Sequence[Index]) -> list[str]:
        """Transposes a tile while the one before it is written: both have their places in turn."""
        return [
            "long *now = at[tile & 1];",
            *(f"now[{i}] = {start};" for i, start in enumerate(self._starts(task))),
            self._written(f"{self._place('tile & 1')}, now"),
            "tile++;",
        ]

    def _written(self, ahead: str) -> str:
        """C statement that writes the tile before, if there is one, and transposes the next."""
        before = f"{self._place('~tile & 1')}, tile ? at[~tile & 1] : 0"
        return f"{self.entry}_tile(call, {before}, {ahead});"

    def _place(self, which: str) -> str:
        return f"turned + ({which}) * {int(self.tiling.scratch_elements)}"

    def _entry(self) -> list[str]:
        return entry_function(self.entry, {f"{self.entry}_work": int(self.values["workers"])})

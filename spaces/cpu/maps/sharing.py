"""Who computes which tiles of a map: the functions of its kernel that call for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaces.algebra.index import Index, index
from spaces.algebra.mapping import TaskMapping, repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.cpu.abi import entry_function
from spaces.cpu.maps.tiling import Tiling
from spaces.derivation.maps.order import ROWS
from spaces.schedule import Value


@dataclass(frozen=True)
class Sharing:
    """Tiles shared by workers, each with room for what it transposes, of C type ``held``."""

    tiling: Tiling
    values: Mapping[str, Value]
    entry: str
    held: str

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
        return [
            f"static void {self.entry}_work(void *context, int worker) {{",
            "  const tw_call *call = context;",
            f"  {self.held} *turned = {turned};",
            *indented(self._mapping.emit(worker, self._task, extents=counts, prefix="t")),
            *(["  tw_flush();"] if self.values["stream"] else []),
            "}",
        ]

    def _task(self, task: Sequence[Index]) -> list[str]:
        *outer, row, column = task
        starts = [*outer, column * int(self.tiling.tile_columns)]
        first = (row * int(self.tiling.tile_rows)).text
        arguments = ", ".join(["call", "turned", first, *(start.text for start in starts)])
        return [f"{self.entry}_tile({arguments});"]

    def _entry(self) -> list[str]:
        return entry_function(self.entry, {f"{self.entry}_work": int(self.values["workers"])})

"""Compiled models: the regions of each graph, who computes them and why, and the gain of the whole,
as it is expected of the regions and as it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING

from tilewright.scheduler.report.plausible import plausible

if TYPE_CHECKING:
    from tilewright.measure.records.run import Run
    from tilewright.scheduler.report.material import Material

OURS = "tilewright"


@dataclass(frozen=True)
class Region:
    """Equal regions of a graph: the ``material`` of their workload, at a ``place`` of the report,
    and the ``run`` that notes their times."""

    place: int
    material: Material
    run: Run

    @property
    def count(self) -> int:
        """The number of equal regions, 1 where it is not known."""
        told = self.run.configuration.get("places")
        return told if isinstance(told, int) and told > 0 else 1

    @property
    def ours(self) -> float | None:
        """Seconds of a call of the kernel."""
        return plausible(self.run.configuration.get("region_seconds"))

    @property
    def torch(self) -> float | None:
        """Seconds of a call of torch's compiled code."""
        return plausible(self.run.configuration.get("region_torch_seconds"))

    @property
    def computed_by(self) -> tuple[str, str]:
        """The name of who computes them, and the reason."""
        told = self.run.configuration
        return str(told.get("by", "-")), str(told.get("why", "-"))

    @property
    def saved(self) -> float:
        """Seconds that kernels save in a call of the whole; 0 where torch computes them."""
        if self.computed_by[0] != OURS or self.ours is None or self.torch is None:
            return 0.0
        return self.count * (self.torch - self.ours)


@dataclass(frozen=True)
class Graph:
    """A graph of a compiled model: its regions that were timed, the one that saves most first."""

    regions: tuple[Region, ...]

    @property
    def _run(self) -> Run:
        return self.regions[0].run

    @property
    def model(self) -> str:
        """The name of the model's class, or of the function."""
        return str(self._run.configuration.get("model") or "a model")

    @property
    def kind(self) -> str:
        """The use of the graph, such as inference."""
        return str(self._run.configuration.get("graph"))

    @property
    def target(self) -> str:
        """The summary of the target."""
        return self._run.target.summary

    @property
    def compiled_at(self) -> float:
        """The Unix time at which it was compiled."""
        return self._run.started_at

    @property
    def ours(self) -> float | None:
        """Seconds of a call of the whole with kernels."""
        return plausible(self._run.configuration.get("ours_seconds"))

    @property
    def torch(self) -> float | None:
        """Seconds of a call of the whole as torch alone compiles it."""
        return plausible(self._run.library_seconds)

    @cached_property
    def expected(self) -> float | None:
        """The speed of the whole, of torch's, that the times of its regions let expect."""
        if self.torch is None:
            return None
        remaining = self.torch - fsum(region.saved for region in self.regions)
        return self.torch / remaining if remaining > 0 else None

    @property
    def measured(self) -> float | None:
        """The speed of the whole with kernels, of torch's; below 1 torch computes all."""
        return self.torch / self.ours if self.torch and self.ours else None

    @property
    def _about(self) -> tuple[object, ...]:
        workloads = frozenset(region.run.workload.key for region in self.regions)
        return self.model, self.kind, self._run.target.fingerprint, workloads


def graphs_of(materials: Sequence[Material]) -> list[Graph]:
    """Return the graphs whose regions are of some materials, the latest first; of those with equal
    regions the latest one."""
    found: dict[str, list[Region]] = {}
    for place, material in enumerate(materials):
        for run in material.graphs:
            found.setdefault(run.session, []).append(Region(place, material, run))
    graphs = [
        Graph(tuple(sorted(regions, key=lambda region: -region.saved)))
        for regions in found.values()
    ]
    graphs.sort(key=lambda graph: graph.compiled_at)
    latest = {graph._about: graph for graph in graphs}
    return sorted(latest.values(), key=lambda graph: -graph.compiled_at)

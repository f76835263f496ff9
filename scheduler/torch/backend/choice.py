"""Equal regions of a graph, and who computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor import config as inductor_config

from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.dispatch.table import Row, Table
from tilewright.scheduler.torch.backend.explanation import OURS, TORCH, RegionReport
from tilewright.scheduler.torch.backend.judging import Times
from tilewright.scheduler.torch.backend.libraries import called_by
from tilewright.scheduler.torch.backend.weights import packed_array, with_packed_weight
from tilewright.scheduler.torch.kernels.open_keys import size_of
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.translation.nodes import fake
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload


@dataclass
class Choice:
    """Equal regions, and what became of them: a reason to leave them to torch, or a function."""

    regions: list[Region]
    report: RegionReport
    answer: Answer | None = None
    table: Table | None = None
    """The table of an open key."""
    function: Any = None
    later: bool = False
    """True if the kernel is to be built while torch computes the regions."""

    @property
    def workload(self) -> Workload:
        """The workload that they all compute."""
        return self.regions[0].workload

    @property
    def key(self) -> str:
        """The text that a compiled graph holds of it."""
        return self.regions[0].key

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of the kernel that computes the regions as they were captured; None where
        that is not known."""
        if self.table is None:
            return None if self.answer is None else self.answer.schedule
        row = self._row(self.size)
        sizes = {kernel.size: kernel.schedule for kernel in self.table.kernels}
        return None if row is None else sizes[row.size]

    @property
    def size(self) -> int:
        """The extent of the open axis as the regions were captured."""
        shapes = [array.shape for array in calling_of(self.workload).inputs]
        return int(size_of(self.key, [torch.empty(shape, device="meta") for shape in shapes]))

    def covers(self, size: int) -> bool:
        """Tell whether the table has a kernel for calls of a size."""
        return self._row(size) is not None

    def _row(self, size: int) -> Row | None:
        rows = () if self.table is None else self.table.rows
        found = (row for row in rows if row.first <= size <= row.last and not row.torch)
        return next(found, None)

    @property
    def operands(self) -> list[torch.Tensor]:
        """Tensors without values that are like their operands."""
        return [fake(node) for node in self.regions[0].operands]

    @property
    def rival(self) -> tuple[str, ...]:
        """The words for what torch does other than to compile the nodes."""
        tuned = inductor_config.max_autotune or inductor_config.max_autotune_gemm
        return (*called_by(self.regions[0].nodes), *(("max-autotune",) if tuned else ()))

    def decide(self, times: Times) -> None:
        """Give them to whoever is faster."""
        self.report.ours_seconds, self.report.torch_seconds = times.ours, times.torch
        self.report.why = "faster" if times.wins else "torch is as fast"
        self.report.by = OURS if times.wins else TORCH

    def leave(self, why: str) -> None:
        """Leave them to torch."""
        self.report.by, self.report.why = TORCH, why

    def wait(self) -> None:
        """Leave them to torch until their kernel is built."""
        self.later = True
        self.leave("its kernel is being built")

    @property
    def is_open(self) -> bool:
        """True if one axis of the regions has any extent."""
        return bool(self.regions[0].open_key)

    @property
    def ours(self) -> bool:
        """True until they are left to torch."""
        return self.report.by == OURS


def packed(choice: Choice) -> Choice | None:
    """Return the choice with the constant weight of each of its regions packed; None if there is
    none."""
    regions = [with_packed_weight(region) for region in choice.regions]
    made = [region for region in regions if region is not None]
    if len(made) < len(regions):
        return None
    weights = {
        (r.weight.node.target, r.weight.turned): packed_array(r).bytes for r in made if r.weight
    }
    program = "; ".join(str(made[0].workload).splitlines())
    report = RegionReport(program, OURS, "", len(made), packed_bytes=sum(weights.values()))
    return Choice(made, report)


def best_of(choices: Sequence[Choice]) -> list[Choice]:
    """Return the best of those that compute the same nodes, in their order."""
    found: dict[Any, Choice] = {}
    for choice in choices:
        about = choice.regions[0].outputs
        known = found.setdefault(about, choice)
        gains = [each.report.gain or 0 for each in (known, choice)]
        if choice.ours and (not known.ours or gains[0] < gains[1]):
            found[about] = choice
    return list(found.values())


def together(regions: Sequence[Region]) -> list[Choice]:
    """Return the regions of one workload and equal operands together, in their order."""
    found: dict[Any, Choice] = {}
    for region in regions:
        lie = tuple(fake(node).stride() for node in region.operands)
        copies = tuple(node in region.copies for node in region.operands)
        constant = tuple(node.op == "get_attr" for node in region.operands)
        about = (region.workload.key, region.key, lie, copies, constant, called_by(region.nodes))
        if about in found:
            found[about].regions.append(region)
            found[about].report.places += 1
        else:
            program = region.open_key or "; ".join(str(region.workload).splitlines())
            found[about] = Choice([region], RegionReport(program, OURS, ""))
    return list(found.values())


def is_up_to_date(known: Any, choice: Choice) -> bool:
    """Tell whether a function that is known calls what the database knows to be best by now."""
    if known is None:
        return False
    if choice.table is not None:
        return getattr(known, "table", None) == choice.table
    return choice.answer is not None and known.schedule == choice.answer.schedule


def is_measured(choice: Choice) -> bool:
    """Tell whether the database has a kernel of a choice's workload."""
    return choice.answer is not None and choice.answer.provenance is Provenance.MEASURED

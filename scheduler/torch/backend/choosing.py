"""Choose the regions of a graph that kernels compute: tune, build, and let them compete."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._inductor import config as inductor_config

from tilewright.measure.cpu.binaries import is_built
from tilewright.measure.database import Database
from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.query import query
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.explanation import OURS, TORCH, RegionReport
from tilewright.scheduler.torch.backend.judging import Times
from tilewright.scheduler.torch.backend.options import Options
from tilewright.scheduler.torch.backend.replacing import pieces
from tilewright.scheduler.torch.backend.weights import (
    like_packed,
    packed_array,
    packed_tensor,
    with_packed_weight,
)
from tilewright.scheduler.torch.kernels.functions import function_for, functions, key_of
from tilewright.scheduler.torch.operator.definition import put
from tilewright.scheduler.torch.regions.partition import Region
from tilewright.scheduler.torch.translation.nodes import fake
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

BUILDERS = 8
"""Kernels that are built side by side, at most."""
SECONDS = 60.0
"""Seconds in which a region is tuned, where nobody says how many."""

Compile = Callable[[fx.GraphModule, Sequence[torch.Tensor]], Callable[[list[Any]], Any]]
"""Inductor: from a graph and tensors without values to a function of a list of tensors."""


@dataclass
class Choice:
    """Equal regions, and what became of them: a reason to leave them to torch, or a function."""

    regions: list[Region]
    report: RegionReport
    answer: Answer | None = None
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
        return key_of(self.workload)

    @property
    def operands(self) -> list[torch.Tensor]:
        """Tensors without values that are like their operands."""
        return [fake(node) for node in self.regions[0].operands]

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
    def open(self) -> bool:
        """True until they are left to torch."""
        return self.report.by == OURS


class Choosing:
    """The choice for one graph on one target."""

    def __init__(
        self, target: Target, options: Options, database: Database | None, compile: Compile
    ) -> None:
        self._target, self._options, self._database = target, options, database
        self._compile = compile
        threads = target.threads if isinstance(target, CpuTarget) else 0
        self.place = (target.kind, threads)

    def chosen(self, regions: Sequence[Region]) -> list[Choice]:
        """Return all regions, equal ones together, each with who computes it. Functions of kernels
        are ready to be called by the operator."""
        choices = _together(regions)
        if inductor_config.freezing:  # else constants of a package may be exchanged
            choices = self._with_packed(choices)
        self._tune(choices)
        self._recall(choices)
        self._build(choices)
        for choice in choices:
            if choice.open:
                self._compete(choice)
        return _best_of(choices)

    def _with_packed(self, choices: Sequence[Choice]) -> list[Choice]:
        """Return the choices, with constant weights packed. The kernel that reads such a weight as
        it is stays a rival where somebody measured it."""
        found = []
        for choice in choices:
            twin = _packed(choice) if choice.open else None
            if twin is not None:
                found.append(twin)
                choice.answer = self._answer(choice.workload)
            if twin is None or _is_measured(choice):
                found.append(choice)
        return found

    # -- kernels -------------------------------------------------------------------------------

    def _tune(self, choices: Sequence[Choice]) -> None:
        """Tune what nobody measured, if that is asked for."""
        for choice in choices:
            choice.answer = self._answer(choice.workload)
        new = [choice for choice in choices if not _is_measured(choice)]
        if self._options.untuned == "skip":
            for choice in new:
                choice.leave("not tuned")
        if self._options.untuned != "tune" or not new or self._database is None:
            return
        from tilewright.scheduler.suites.suite import Member, Suite
        from tilewright.scheduler.suites.tune import tune_suite

        members = tuple(Member(choice.workload, len(choice.regions)) for choice in new)
        seconds = self._options.seconds or SECONDS * len(new)
        tune_suite(Suite(judging.COMMAND, members), self._target, self._database, seconds=seconds)
        for choice in new:
            choice.answer = self._answer(choice.workload)

    def _answer(self, workload: Workload) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is known yet: that is no news here
            return query(workload, self._target, self._database)

    def _build(self, choices: Sequence[Choice]) -> None:
        """Build all kernels side by side, or leave for later what is not built."""
        if self._options.build == "background":
            for choice in choices:
                if choice.open and not self._is_ready(choice):
                    choice.wait()
        wanted = [choice for choice in choices if choice.open]
        with warnings.catch_warnings(), ThreadPoolExecutor(BUILDERS) as pool:
            warnings.simplefilter("ignore")
            list(pool.map(self._make, wanted))

    def _is_ready(self, choice: Choice) -> bool:
        """Return True if a call of the kernel needs no compiler."""
        answer = choice.answer
        if functions.known(key_of(choice.workload), *self.place) is not None:
            return True
        if answer is None or not _is_measured(choice) or not isinstance(self._target, CpuTarget):
            return False
        return is_built(answer.space.lower(answer.schedule).source, self._target)

    def _make(self, choice: Choice) -> None:
        """Make the function of a choice; a kernel that fails leaves it to torch."""
        answer = choice.answer
        known = functions.known(key_of(choice.workload), *self.place)
        try:
            if known is not None and answer is not None and known.schedule == answer.schedule:
                choice.function = known
            else:
                choice.function = function_for(choice.workload, self._target, self._database)
                put(key_of(choice.workload), *self.place, choice.function)
        except Exception as error:  # whatever a compiler or a machine has to say
            choice.leave(f"its kernel fails: {str(error).splitlines()[0][:150]}")
            return
        choice.report.template = choice.function.schedule.template
        choice.report.provenance = str(choice.function.provenance)

    # -- the competition -----------------------------------------------------------------------

    def _recall(self, choices: Sequence[Choice]) -> None:
        """Ask the database how the same competitions ended earlier."""
        if self._options.judge == "always" or self._database is None:
            return
        for choice in choices:
            if choice.open and choice.answer is not None:
                about = (choice.workload, self._target, choice.answer.schedule)
                known = judging.remembered(self._database, *about, choice.operands)
                if known is not None:
                    choice.decide(known)

    def _compete(self, choice: Choice) -> None:
        """Let the kernel and torch compete, unless it is known how that ends."""
        if self._options.judge == "always":
            choice.report.why = "asked for"
        elif choice.report.gain is None:
            times = self._times(choice.regions[0])
            if times is None:
                choice.leave("its result differs from torch's")
                return
            choice.decide(times)
            if self._database is not None:
                about = (choice.workload, self._target, choice.function.schedule)
                judging.remember(self._database, *about, choice.operands, times)

    def _times(self, region: Region) -> Times | None:
        """Return the times of the two in turns; None if they disagree."""
        piece, weight = pieces(region), region.weight
        count, packed = len(piece.operands), [like_packed(region)] if weight else []
        ours = self._compile(piece.ours, [*piece.operands, *packed])
        rival = self._compile(piece.torch, piece.operands)
        with judging.running():
            sets = judging.rotation(piece.operands, judging.cache_bytes(self._target))
            if weight is not None:
                place = list(dict.fromkeys(region.operands)).index(weight.node)
                sets = [[*each, packed_tensor(each[place], weight)] for each in sets]
            results = (ours(list(sets[0]))[0], rival(list(sets[0][:count]))[0])
            if not judging.close(*results):
                return None
            return judging.in_turns(
                lambda given: ours(list(given)), lambda given: rival(list(given[:count])), sets
            )


def _packed(choice: Choice) -> Choice | None:
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


def _best_of(choices: Sequence[Choice]) -> list[Choice]:
    """Return the best of those that compute the same nodes, in their order."""
    found: dict[Any, Choice] = {}
    for choice in choices:
        about = choice.regions[0].outputs
        known = found.setdefault(about, choice)
        gains = [each.report.gain or 0 for each in (known, choice)]
        if choice.open and (not known.open or gains[0] < gains[1]):
            found[about] = choice
    return list(found.values())


def _together(regions: Sequence[Region]) -> list[Choice]:
    """Return the regions of one workload and equal operands together, in their order."""
    found: dict[Any, Choice] = {}
    for region in regions:
        lie = tuple(fake(node).stride() for node in region.operands)
        copies = tuple(node in region.copies for node in region.operands)
        constant = tuple(node.op == "get_attr" for node in region.operands)
        about = (region.workload.key, key_of(region.workload), lie, copies, constant)
        if about in found:
            found[about].regions.append(region)
            found[about].report.places += 1
        else:
            program = "; ".join(str(region.workload).splitlines())
            found[about] = Choice([region], RegionReport(program, OURS, ""))
    for choice in found.values():
        if any(len(region.outputs) > 1 for region in choice.regions):
            choice.leave("it has several outputs")
    return list(found.values())


def _is_measured(choice: Choice) -> bool:
    return choice.answer is not None and choice.answer.provenance is Provenance.MEASURED

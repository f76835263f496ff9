"""Choose the regions of a graph that kernels compute: tune, build, and let them compete."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from torch._inductor import config as inductor_config

from tilewright.measure.database import Database
from tilewright.scheduler.answer import Answer
from tilewright.scheduler.dispatch.open_functions import BUILDERS
from tilewright.scheduler.query import query
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.choice import (
    Choice,
    best_of,
    is_measured,
    is_up_to_date,
    packed,
    together,
)
from tilewright.scheduler.torch.backend.contenders import Compile, Contender, compete
from tilewright.scheduler.torch.backend.judging import Times
from tilewright.scheduler.torch.backend.options import Options
from tilewright.scheduler.torch.backend.replacing import ways_of
from tilewright.scheduler.torch.backend.tables import are_built, find_tables
from tilewright.scheduler.torch.kernels.functions import by_table, function_for, functions
from tilewright.scheduler.torch.operator.definition import put
from tilewright.scheduler.torch.regions.region import Region
from tilewright.spaces.backends import backend
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

SECONDS = 60.0
"""Seconds in which a region is tuned, where nobody says how many."""


class Choosing:
    """The choice for one graph on one target."""

    def __init__(
        self, target: Target, options: Options, database: Database | None, compile: Compile
    ) -> None:
        self.target, self._options, self._database = target, options, database
        self.compile = compile
        threads = target.threads if isinstance(target, CpuTarget) else 0
        self.place = (target.kind, threads)

    def chosen(self, regions: Sequence[Region]) -> list[Choice]:
        """Return all regions, equal ones together, each with who computes it. Functions of kernels
        are ready to be called by the operator."""
        choices = together(regions)
        wanted = [choice for choice in choices if choice.is_open]
        find_tables(wanted, self.target, self._options, self._database)
        if inductor_config.freezing:  # else constants of a package may be exchanged
            choices = self._with_packed(choices)
        self._tune(choices)
        self._recall(choices)
        self._build(choices)
        for choice in choices:
            if choice.ours:
                self._compete(choice)
        return best_of(choices)

    def _with_packed(self, choices: Sequence[Choice]) -> list[Choice]:
        """Return the choices, with constant weights packed. The kernel that reads such a weight as
        it is stays a rival where somebody measured it."""
        found = []
        for choice in choices:
            twin = packed(choice) if choice.ours else None
            if twin is not None:
                found.append(twin)
                choice.answer = self._answer(choice.workload)
            if twin is None or is_measured(choice):
                found.append(choice)
        return found

    # -- kernels -------------------------------------------------------------------------------

    def _tune(self, choices: Sequence[Choice]) -> None:
        """Tune what nobody measured, if that is asked for."""
        closed = [choice for choice in choices if not choice.is_open]
        for choice in closed:
            choice.answer = self._answer(choice.workload)
        new = [choice for choice in closed if not is_measured(choice)]
        if self._options.untuned == "skip":
            for choice in new:
                choice.leave("not tuned")
        if self._options.untuned != "tune" or not new or self._database is None:
            return
        from tilewright.scheduler.suites.suite import Member, Suite
        from tilewright.scheduler.suites.tune import tune_suite

        places = Counter[Workload]()  # operands of several strides may have one workload
        for choice in new:
            places[choice.workload] += len(choice.regions)
        members = tuple(Member(work, count) for work, count in places.items())
        seconds = self._options.seconds or SECONDS * len(members)
        tune_suite(Suite(judging.COMMAND, members), self.target, self._database, seconds=seconds)
        for choice in new:
            choice.answer = self._answer(choice.workload)

    def _answer(self, workload: Workload) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is known yet: that is no news here
            return query(workload, self.target, self._database)

    def _build(self, choices: Sequence[Choice]) -> None:
        """Build all kernels side by side, or leave for later what is not built."""
        if self._options.build == "background":
            for choice in choices:
                if not choice.ours or self._is_ready(choice):
                    continue
                if choice.is_open:
                    choice.leave("not all kernels of its table are built")
                else:
                    choice.wait()
        wanted = [choice for choice in choices if choice.ours]
        with warnings.catch_warnings(), ThreadPoolExecutor(BUILDERS) as pool:
            warnings.simplefilter("ignore")
            list(pool.map(self._make, wanted))

    def _is_ready(self, choice: Choice) -> bool:
        """Return True if a call of the kernel needs no compiler."""
        answer = choice.answer
        if functions.known(choice.key, *self.place) is not None:
            return True
        if choice.table is not None:
            return are_built(choice.table, self.target)
        if answer is None or not is_measured(choice):
            return False
        function = backend(self.target.kind).part("function")
        return bool(function.is_built(answer.space.lower(answer.schedule), self.target))

    def _make(self, choice: Choice) -> None:
        """Make the function of a choice; a kernel that fails leaves it to torch."""
        known = functions.known(choice.key, *self.place)
        try:
            if is_up_to_date(known, choice):
                choice.function = known
            elif choice.table is not None:
                given = (choice.key, choice.table, self.target, self._database)
                choice.function = by_table(*given)
                put(choice.key, *self.place, choice.function)
            else:
                choice.function = function_for(choice.workload, self.target, self._database)
                put(choice.key, *self.place, choice.function)
        except Exception as error:  # whatever a compiler or a machine has to say
            choice.leave(f"its kernel fails: {str(error).splitlines()[0][:150]}")
            return
        if choice.table is None:
            choice.report.template = choice.function.schedule.template
            choice.report.provenance = str(choice.function.provenance)

    # -- the competition -----------------------------------------------------------------------

    def _recall(self, choices: Sequence[Choice]) -> None:
        """Ask the database how the same competitions ended earlier."""
        if self._options.judge == "always" or self._database is None:
            return
        for choice in choices:
            if choice.ours and choice.schedule is not None:
                about = (choice.workload, self.target, choice.schedule)
                known = judging.remembered(self._database, *about, choice.operands, choice.rival)
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
            schedule = choice.schedule if choice.is_open else choice.function.schedule
            if self._database is not None and schedule is not None:
                about = (choice.workload, self.target, schedule)
                judging.remember(self._database, *about, choice.operands, times, choice.rival)

    def _times(self, region: Region) -> Times | None:
        """Return the times of the two in turns; None if they disagree."""
        ours, rival = (Contender(way, self.compile) for way in ways_of(region))
        limits = {node.name: limit for node, limit in region.limits.items()}
        return compete(ours, rival, judging.cache_bytes(self.target), limits)

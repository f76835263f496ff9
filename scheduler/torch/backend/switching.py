"""A compiled graph that torch computes until its kernels are built, in a process of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tilewright.measure.memory import memory_limit
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.explanation import OURS, TORCH, GraphReport
from tilewright.scheduler.torch.kernels.building import Wanted, build_later
from tilewright.scheduler.torch.operator.definition import put_wanted

log = logging.getLogger("tilewright")

Compiled = Callable[[list[Any]], Any]
"""A graph that Inductor compiled: a function of a list of inputs."""


class Switching:
    """The graph ``now``, and from the moment on when all kernels are there the graph ``then``, if
    it gives the same and is not slower."""

    _boxed_call = True  # it takes a list, as what Inductor compiles does

    def __init__(
        self,
        now: Compiled,
        then: Compiled,
        inputs: Sequence[Any],
        limits: Mapping[int, int],
        judge: str,
    ) -> None:
        self._call, self._then = now, then
        self._inputs, self._limits, self._judge = inputs, limits, judge
        self._missing = 0

    def __call__(self, inputs: list[Any]) -> Any:
        """Compute the outputs of a list of inputs, which is emptied."""
        return self._call(inputs)

    def follow(
        self,
        wanted: Sequence[Wanted],
        choices: Sequence[Choice],
        report: GraphReport,
        database: Any,
    ) -> None:
        """Have the kernels built, and take them when they are there."""
        self._missing = len(wanted)

        def end() -> None:
            why = "some kernel cannot be built" if self._missing else self._switched()
            for choice in choices:
                choice.report.why = why or "built meanwhile"
                choice.report.by = TORCH if why else OURS
            if not why:
                report.by, report.why = OURS, ""
            log.info("torch.compile: kernels were built meanwhile%s", why and f": {why}")

        build_later(wanted, database, self._take, end)

    def _take(self, wanted: Wanted, function: Any) -> None:
        put_wanted(wanted, function)
        self._missing -= 1

    def _switched(self) -> str:
        """Call the kernels from now on, or say why not."""
        if self._judge != "always":
            if judging.size(self._inputs) > memory_limit() / 4:
                return "the graph is too large to be compared as a whole"
            with torch.no_grad():
                if why := self._objection(judging.like(self._inputs, self._limits)):
                    return why
        self._call = self._then
        return ""

    def _objection(self, given: Sequence[Any]) -> str:
        """Return the reason against the graph with kernels, if there is one."""
        results = [call(judging.copied(given)) for call in (self._then, self._call)]
        if not all(map(judging.alike, *results)):
            return "its result differs from torch's"
        times = judging.in_turns(
            lambda inputs: self._then(list(inputs)),
            lambda inputs: self._call(list(inputs)),
            [given],
        )
        return "the whole graph is slower with kernels" if times.gain < 1 else ""

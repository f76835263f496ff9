"""A compiled graph that torch computes until its kernels are built, in a process of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.explanation import OURS, TORCH, GraphReport
from tilewright.scheduler.torch.kernels.building import Wanted, build_later
from tilewright.scheduler.torch.operator.definition import put_wanted

log = logging.getLogger("tilewright")

Compiled = Callable[[list[Any]], Any]
"""A graph that Inductor compiled: a function of a list of inputs."""
Switch = Callable[[], Compiled | str]
"""Judges a graph whose kernels are all built: returns it, or why it is not to be called."""


class Switching:
    """The graph ``now``, and from the moment on when all kernels are there the one that a
    :data:`Switch` returns."""

    _boxed_call = True  # it takes a list, as what Inductor compiles does

    def __init__(self, now: Compiled) -> None:
        self._call = now
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
        switch: Switch,
        record: Callable[[], None],
    ) -> None:
        """Have the kernels built, and take them when they are there; ``record`` what came of it."""
        self._missing = len(wanted)

        def end() -> None:
            found = "some kernel cannot be built" if self._missing else switch()
            why = found if isinstance(found, str) else ""
            if not isinstance(found, str):
                self._call = found
                report.by, report.why = OURS, ""
            for choice in choices:
                choice.report.why = why or "built meanwhile"
                choice.report.by = TORCH if why else OURS
            log.info("torch.compile: kernels were built meanwhile%s", why and f": {why}")
            record()

        build_later(wanted, database, self._take, end)

    def _take(self, wanted: Wanted, function: Any) -> None:
        put_wanted(wanted, function)
        self._missing -= 1

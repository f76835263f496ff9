"""A recorded space as a space of the product's, and its device as a lookup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from experiments.replay.recording import Recording
from spaces.kernel import Kernel
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.target import Target
from spaces.template import Columns, Decision, Rule, Template
from spaces.workload import Axis, Operand, Workload


@dataclass(frozen=True)
class RecordedTarget(Target):
    """The device of a recording, of which nothing but a name is known."""

    kind: ClassVar[str] = "recorded"
    device: str

    @property
    def summary(self) -> str:
        return f"recorded {self.device}"


class RecordedTemplate(Template):
    """The configurations of a recording. It reports no quantities: models see its decisions.

    Its rules allow what was recorded: each leading part of a configuration, and each pair of
    values, must occur, so that schedules can be built decision by decision.
    """

    name: ClassVar[str] = "recorded"

    def __init__(self, recording: Recording, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.decisions = tuple(Decision(n, values) for n, values in recording.domains.items())
        domains = {name: np.array(values) for name, values in recording.domains.items()}
        recorded = zip(domains, zip(*recording.seconds, strict=True), strict=True)
        found = {n: np.searchsorted(domains[n], np.array(column)) for n, column in recorded}
        names = tuple(domains)
        groups = [names[:depth] for depth in range(3, len(names) + 1)]
        groups += combinations(names, 2)
        self.rules = tuple(_occurs(group, domains, found) for group in groups)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        return {}

    def lower(self, schedule: Schedule) -> Kernel:
        raise NotImplementedError("a recorded kernel cannot be made, only looked up")


class SimulatedDevice:
    """``space`` to search, and ``run`` to time a schedule of it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        kernel, _, device = recording.name.partition("_")
        element = Operand("out", "float32", ("i",), (1,), (0,))
        workload = Workload(
            operator=kernel,
            parameters=(("recording", recording.name),),
            axes=(Axis("i", 1),),
            inputs=(),
            epilogue=None,
            epilogue_inputs=(),
            output=element,
            accumulator="float32",
        )
        target = RecordedTarget(device)
        self.space = Space(workload, target, [RecordedTemplate(recording, workload, target)])

    def space_for(self, workload: Workload, target: Target) -> Space:
        """The one space there is, in the form that cost models ask for."""
        return self.space

    def run(self, schedule: Schedule) -> float | None:
        """Recorded seconds; None if the configuration failed."""
        names = self.recording.domains
        return self.recording.seconds[tuple(schedule.values[name] for name in names)]


def _occurs(
    names: tuple[str, ...], domains: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
) -> Rule:
    """The rule that the values of these decisions were recorded together."""
    together = np.zeros([len(domains[name]) for name in names], dtype=bool)
    together[tuple(found[name] for name in names)] = True

    def holds(columns: Columns) -> np.ndarray:
        index = tuple(np.searchsorted(domains[name], columns[name]) for name in names)
        return np.asarray(together[index])

    def explain(values: Mapping[str, object]) -> str:
        return "never recorded: " + ", ".join(f"{name}={values[name]}" for name in names)

    return Rule("recorded", names, holds, explain)

"""A recorded space as a space of the product's, and its device as a lookup."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

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
        names = list(recording.domains)
        domains = [np.array(values) for values in recording.domains.values()]
        valid = [
            np.searchsorted(domain, np.array(column))
            for domain, column in zip(domains, zip(*recording.seconds, strict=True), strict=True)
        ]
        groups = [tuple(range(depth)) for depth in range(3, len(names) + 1)]
        groups += combinations(range(len(names)), 2)
        self.rules = tuple(
            _occurs(
                [names[i] for i in group], [domains[i] for i in group], [valid[i] for i in group]
            )
            for group in groups
        )

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
        return self.recording.seconds[tuple(schedule.values[name] for name in names)]  # type: ignore[misc]


def _occurs(names: list[str], domains: list[np.ndarray], valid: list[np.ndarray]) -> Rule:
    """The rule that values of decisions were recorded together."""
    sizes = [len(domain) for domain in domains]
    table = np.zeros(sizes, dtype=bool)
    table[tuple(valid)] = True

    def holds(columns: Any) -> Any:
        return table[
            tuple(np.searchsorted(d, columns[n]) for n, d in zip(names, domains, strict=True))
        ]

    return Rule(
        "recorded",
        tuple(names),
        holds,
        lambda values: "never recorded: " + ", ".join(f"{n}={values[n]}" for n in names),
    )

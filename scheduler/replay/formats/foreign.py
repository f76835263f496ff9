"""Spaces of kernels that are not ours, as they stand in files of other tuners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.scheduler.replay.parameters import parameter_quantities
from tilewright.scheduler.replay.recording import Outcome, Recording, merged, recording
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language import program
from tilewright.spaces.schedule import LARGEST, Schedule, Value
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Template
from tilewright.spaces.workloads.workload import Workload

MOST_DECISIONS = 128
"""Parameters that vary: pairs of them are features and rules."""


@dataclass(frozen=True)
class ForeignTarget(Target):
    """A device of which nothing but its name is known."""

    kind: ClassVar[str] = "recorded"
    device: str

    @property
    def summary(self) -> str:
        """The name."""
        return self.device


class ForeignTemplate(Template):
    """A kernel of which nothing but its parameters are known."""

    name: ClassVar[str] = "recorded"
    rules = ()

    def __init__(self, workload: Workload, target: Target, decisions: tuple[Decision, ...]) -> None:
        super().__init__(workload, target)
        self.decisions = decisions

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Refuses nothing."""
        return None

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities that follow from the parameters alone."""
        return parameter_quantities({d.name: d.values for d in self.decisions}, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Raise: a recorded kernel has no source."""
        raise NotImplementedError("a recorded kernel cannot be made, only looked up")


def foreign_recording(
    name: str,
    kernel: str,
    device: str,
    configurations: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Outcome],
) -> Recording:
    """Return the recording of a kernel's ``configurations``: parameter to value, the same
    parameters in each. Parameters with a single value are no decisions, and what stands there again
    is no other schedule. :class:`InputError` if none ran."""
    if not configurations:
        raise InputError(f"{name} holds no configuration")
    decisions, columns = [], []
    for parameter in configurations[0]:
        values = _as_values([configuration[parameter] for configuration in configurations])
        domain = tuple(sorted(set(values), key=by_size))
        if len(domain) > 1:
            decisions.append(Decision(parameter, domain))
            columns.append(values)
    if len(decisions) > MOST_DECISIONS:
        raise InputError(
            f"{name} has {len(decisions)} parameters that vary; allowed: up to {MOST_DECISIONS}"
        )
    names = [decision.name for decision in decisions]
    points = zip(*columns, strict=True) if columns else [()] * len(configurations)
    schedules = [
        Schedule(ForeignTemplate.name, tuple(zip(names, point, strict=True))) for point in points
    ]
    template = ForeignTemplate(_workload(kernel), ForeignTarget(device), tuple(decisions))
    return recording(name, [template], merged(zip(schedules, outcomes, strict=True)))


def _as_values(values: Sequence[Any]) -> Sequence[Value]:
    """Return the values of one type that schedules can have: as they are, or else as text."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {str}) or (kinds == {int} and max(map(abs, values)) <= LARGEST):
        return values
    return [str(value) for value in values]


def by_size(value: Value) -> tuple[float, str]:
    """Sort key: numbers (also those written as text) by size, then other text.

    No two values have equal keys, so the order is the same in every process.
    """
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = np.inf
    return np.inf if np.isnan(number) else number, str(value)


def _workload(kernel: str) -> Workload:
    """Stand for what the kernel computes, of which nothing but its name is known."""
    return Workload(kernel, (), program("out[i] = 0", i=1), "nothing but its name is known")

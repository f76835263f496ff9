"""What the functions of all targets are: a schedule's kernel, that can be copied and pickled."""

from __future__ import annotations

from typing import Any, Self

from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.target import Target
from spaces.workloads.workload import Workload


class KernelFunction:
    """A schedule's kernel as a function of arrays. It can be copied and pickled.

    ``source`` is the kernel's text, ``provenance`` where the schedule is from.
    """

    def __init__(self, space: Space, schedule: Schedule, provenance: str) -> None:
        self.workload = space.workload
        self.target = space.target
        self.schedule = schedule
        self.provenance = provenance
        self._kernel = space.lower(schedule)
        self.source = self._kernel.source.text

    def __copy__(self) -> Self:
        """Itself, as of every function."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is made of: the schedule, no code. Who unpickles it builds it anew."""
        return self.remade, (self.workload, self.target, self.schedule, self.provenance)

    @classmethod
    def remade(
        cls, workload: Workload, target: Target, schedule: Schedule, provenance: str
    ) -> Self:
        """A function like the one of these parts."""
        return cls(space_for(workload, target), schedule, provenance)

    def __repr__(self) -> str:
        return f"<{self.workload} on {self.target.summary}, {self.provenance}: {self.schedule}>"

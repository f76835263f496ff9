"""The common part of callable kernels: each holds a schedule, and can be copied and pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.calling import Calling
from tilewright.spaces.workloads.workload import Workload

Called = Callable[[int, Calling], Callable[..., Any]]
"""A function from the extent of a call, and its arrays, to the function of these arrays."""


class RefusedKernelError(RuntimeError):
    """A kernel that its compiler refuses, or builds worse than it is meant to be."""


class KernelFunction:
    """A schedule's kernel as a function of arrays. It can be copied and pickled.

    ``source`` is the kernel's text, ``provenance`` where the schedule is from, ``numerics`` the
    promise about errors that it keeps. ``check_indices`` is whether each call looks at its indices
    first; kernels stay within their arrays anyway.
    """

    checks: ClassVar[bool]
    """True if calls check their indices by default."""

    def __init__(
        self,
        space: Space,
        schedule: Schedule,
        provenance: str,
        check_indices: bool | None = None,
    ) -> None:
        self.workload = space.workload
        self.target = space.target
        self.schedule = schedule
        self.provenance = provenance
        self.numerics = space.numerics_of(schedule)
        self.check_indices = self.checks if check_indices is None else check_indices
        self._kernel = space.lower(schedule)
        self.source = self._kernel.source.text
        self._make_ready()

    def _make_ready(self) -> None:
        """Do what calls need once: build the kernel, for example."""

    @classmethod
    def opened(cls, space: Space, schedule: Schedule, kernel: Kernel) -> Called:
        """Return the calls of an open ``kernel`` of a schedule, built, by extent and arrays."""
        raise NotImplementedError

    @classmethod
    def is_built(cls, kernel: Kernel, target: Target) -> bool:
        """Tell whether calling a kernel here needs no compiler, as far as that is known."""
        return False

    def __copy__(self) -> Self:
        """Return the function itself, as for every function."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of: the schedule, no code. Who unpickles it builds it anew."""
        parts = (self.workload, self.target, self.schedule, self.provenance, self.check_indices)
        return self.remade, parts

    @classmethod
    def remade(cls, workload: Workload, target: Target, *parts: Any) -> Self:
        """Return a function like the one of these parts."""
        return cls(space_for(workload, target), *parts)

    def __repr__(self) -> str:
        return f"<{self.workload} on {self.target.summary}, {self.provenance}: {self.schedule}>"

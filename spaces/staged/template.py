"""Shared parts of templates of several kernels, on all targets: see
:mod:`spaces.derivation.cutting` for the parts, and :mod:`spaces.staged.lifted` for their decisions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.staged import lifted
from tilewright.spaces.staged.partition import Part
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Template
from tilewright.spaces.workloads.workload import PROGRAM, Workload


class Staged(Template):
    """Kernels of other templates, each of which reads what the ones before it have written."""

    name: ClassVar[str] = "staged"
    walks_steps: ClassVar[bool] = True
    refuses_products: ClassVar[str] = "one kernel computes a product of matrices"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = self.cut(workload, target)
        assert not isinstance(found, str)
        self.parts = found
        self.templates = [part.template(part.workload, target) for part in self.parts]
        self.numbers = self.deciding(self.templates)
        self.decisions = lifted.decisions(self.templates, self.numbers)
        self.rules = lifted.rules(self.templates, self.numbers)

    @classmethod
    @abstractmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """Return the parts that compute a program, or why there are none on this target."""

    @classmethod
    def cut(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """The parts, two at least, or why there are none."""
        parts = cls.parts_of(workload, target)
        if isinstance(parts, str):
            return parts
        if len(parts) == 1:
            return "one kernel computes it"
        return "its phases are computed apart" if all(part.wholes for part in parts) else parts

    @classmethod
    def deciding(cls, templates: Sequence[Template]) -> Sequence[int]:
        """Return the number of the part whose decisions each part has: its own."""
        return range(1, len(templates) + 1)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Say why not: one kernel computes it, or no cut gives programs that kernels compute."""
        found = cls.cut(workload, target)
        return found if isinstance(found, str) else None

    @property
    def functions(self) -> frozenset[str]:
        """The functions of its parts."""
        return frozenset[str]().union(*(each.functions for each in self.templates))

    @property
    def versioned(self) -> str:
        """Its version with those of its parts, such as ``staged.1+rows.2+contraction.3``."""
        return "+".join([super().versioned, *(each.versioned for each in self.templates)])

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Combine the quantities of all parts."""
        return lifted.quantities(self.templates, self.numbers, columns)

    def kernels(self, schedule: Schedule) -> list[Kernel]:
        """Return the kernel of each part."""
        decided = lifted.schedules(self.templates, self.numbers, schedule)
        return [each.lower(own) for each, own in zip(self.templates, decided, strict=True)]


class WithPhases:
    """Shared base of :class:`Staged` templates that compute the phases of one sum, such as those of
    a transposed convolution with a stride: see :mod:`spaces.derivation.phases`. Phases of equal
    extents share decisions."""

    name: ClassVar[str] = "phased"
    falls_apart: ClassVar[bool] = True

    @classmethod
    def cut(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """The phases, or why there are none."""
        return cls.parts_of(workload, target)

    @classmethod
    def deciding(cls, templates: Sequence[Template]) -> Sequence[int]:
        """Return the number of the first part that is like each part."""
        like = [(type(t), t.decisions, dict(t.workload.extents)) for t in templates]
        return [like.index(each) + 1 for each in like]

    @classmethod
    @abstractmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""


class WithDivision:
    """Shared base of :class:`Staged` templates that divide a program where that is predicted to
    cost least, and not at the first cut that has kernels: see :mod:`spaces.staged.division`."""

    name: ClassVar[str] = "divided"
    falls_apart: ClassVar[bool] = True


class WithLoops:
    """Shared base of :class:`Staged` templates with plain loops. Programs are cut in more ways,
    because parts may have a plain kernel of loops if the others have fast ones.
    """

    name: ClassVar[str] = "staged_loops"
    version: ClassVar[int] = 1
    last_resort: ClassVar[bool] = True
    refuses_products: ClassVar[str] = ""
    note: ClassVar[str] = (
        "no template serves this program as it is: several kernels compute it, a plain one of "
        "loops (slow) where no fast one does"
    )

    @classmethod
    def cut(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """The parts, two at least, or why there are none."""
        program = workload.program
        return cls.parts_of(Workload(PROGRAM, (), program, "it is cut"), target)

    @classmethod
    @abstractmethod
    def parts_of(cls, workload: Workload, target: Target) -> tuple[Part, ...] | str:
        """See :class:`Staged`."""

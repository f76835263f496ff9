"""The small interface behind which every family of kernels stands, a user's own included."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

Columns = Mapping[str, np.ndarray]
"""Decision name to an array of values; arrays broadcast against each other."""


@dataclass(frozen=True)
class Decision:
    """One named choice with its finite values, in an order in which neighbours are alike."""

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"decision {self.name}: values must be distinct: {self.values}")


@dataclass(frozen=True)
class Rule:
    """One named constraint on schedules.

    ``reads`` names the decisions that ``holds`` looks at. ``holds`` takes their columns and gives a
    boolean array, so that whole populations are judged at once. ``explain`` takes one schedule's
    values and says in words why it was refused. An ``implied`` rule refuses nothing that others
    would not refuse: it only finds it earlier.
    """

    name: str
    reads: tuple[str, ...]
    holds: Callable[[Any], Any]
    explain: Callable[[Mapping[str, Any]], str]
    implied: bool = False


class Template(ABC):
    """A family of kernels for one workload on one target.

    ``decisions`` and ``rules`` span its space; ``version`` rises when the same schedule would
    lower to another kernel, so that old measurements are told apart. A ``last_resort`` serves only
    where no template before it does; ``note`` is what people are told then. One that
    ``writes_apart`` writes outputs with steps, too (:class:`spaces.workloads.array.Array`). The
    decisions of one that ``falls_apart`` are in groups that no rule connects. One that
    ``reads_codes`` serves workloads with packed elements of up to 8 bits, one that
    ``walks_steps`` serves stages that read themselves (:mod:`spaces.language.cycles`).
    ``refuses_products`` is why it serves no product of matrices, whatever else it looks like; empty
    if it may.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    last_resort: ClassVar[bool] = False
    note: ClassVar[str] = ""
    writes_apart: ClassVar[bool] = False
    falls_apart: ClassVar[bool] = False
    recomputes: ClassVar[bool] = False
    reads_codes: ClassVar[bool] = False
    walks_steps: ClassVar[bool] = False
    refuses_products: ClassVar[str] = ""
    decisions: tuple[Decision, ...]
    rules: tuple[Rule, ...]

    def __init__(self, workload: Workload, target: Target) -> None:
        self.workload = workload
        self.target = target

    def with_values(self, values: Mapping[str, tuple[Value, ...]]) -> Self:
        """Return the same template whose decisions ``values`` names have those values instead."""
        other = copy(self)
        other.decisions = tuple(
            Decision(decision.name, values.get(decision.name, decision.values))
            for decision in self.decisions
        )
        return other

    @property
    def versioned(self) -> str:
        """The name and the version, such as ``contraction.2``: what a schedule's text means."""
        return f"{self.name}.{self.version}"

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why a schedule has no kernel that takes the extent of ``axis`` at each call; None if
        it has one."""
        return f"kernels of {self.name} have fixed extents"

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return a kernel for all extents of ``axis`` up to the workload's, for which
        :meth:`why_not_open` has no reason. Raises :class:`InputError` if there is none."""
        raise InputError(f"kernels of {self.name} have fixed extents")

    def layouts(self, schedule: Schedule) -> Iterable[str]:
        """Say, a line each, where a schedule's kernel keeps its arrays; none if the template does
        not tell."""
        return ()

    @classmethod
    def numerics_of(cls, workload: Workload) -> Numerics:
        """Return the promise about errors that kernels of a workload keep: ``FAST`` where their
        bounds are weaker than those of the program as it is written."""
        return Numerics.STRICT

    @property
    def functions(self) -> frozenset[str]:
        """Functions that kernels call: those of the workload, and what a template adds."""
        return frozenset(self.workload.functions)

    @classmethod
    @abstractmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Say why this template cannot serve the workload on the target, in words; None if it
        can."""

    @classmethod
    def why_not(cls, workload: Workload, target: Target) -> str | None:
        """Return what :meth:`refuses` says, or that packed codes are not read here, products of
        matrices not served, or no steps computed one after the other."""
        if cls.refuses_products and workload.matmul:
            return cls.refuses_products
        if workload.coded and not cls.reads_codes:
            array = workload.coded[0]
            return f"{array.name} has packed codes of {array.dtype}, which it does not read"
        known = () if cls.walks_steps or workload.matmul else cycles(workload.program)
        if known:
            return f"{known[0].state[0]} reads itself one step before; no kernel goes step by step"
        return cls.refuses(workload, target)

    @abstractmethod
    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Physical quantities of many schedules, one array each, by the names of
        ``spaces.quantities``. ``columns`` holds one-dimensional arrays of equal length."""

    def entry(self, schedule: Schedule) -> str:
        """Return the name of a schedule's kernel: that of no other schedule or workload."""
        text = f"{self.workload} {schedule.key}"
        return f"tw_{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @abstractmethod
    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel of a schedule that keeps all rules. Deterministic.

        It imports what writes the code, which takes a while and which most questions about a space
        do not need.

        Whatever operands of indices hold (:class:`spaces.language.program.Entries`), it ends, and
        stays within its arrays: no call looks at them first unless that is asked for."""

"""Decide what the forward pass of an operator saves for its gradient.

Every :class:`GradientPlan` is a pair of workloads, tuned and looked up like any other. Their times
on record, or predicted ones, say which plan is the fastest of those that keep few enough bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.query import query
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.registry import space_for
from tilewright.spaces.settings import Default
from tilewright.spaces.staged.division import ON_CPU, ON_GPU, Costs
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.gradient_plans import GradientPlan
from tilewright.spaces.workloads.gradients import Names, gradient_plans
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.spaces.language import Program


@dataclass(frozen=True)
class TimedPlan:
    """A plan with the best known schedules of its two programs."""

    plan: GradientPlan
    forward: Answer
    backward: Answer

    @property
    def seconds(self) -> float | None:
        """The time of both kernels; None if one is unknown."""
        times = (self.forward.latency, self.backward.latency)
        return None if None in times else sum(time for time in times if time is not None)

    @property
    def is_measured(self) -> bool:
        """Tell whether both times were measured."""
        both = (self.forward, self.backward)
        return all(each.provenance is Provenance.MEASURED for each in both)

    @property
    def rank(self) -> tuple[bool, float, int]:
        """The less, the better: measured ones first, by their times and then their bytes."""
        seconds = float("inf") if self.seconds is None else self.seconds
        return not self.is_measured, seconds, self.plan.bytes


def best_gradient_plan(
    of: Workload | Program | str,
    wrt: Names,
    target: Target | str = Default.TARGET,
    database: Database | str | Path | None = Default.DATABASE,
    memory: int | None = None,
    outputs: Names | None = None,
    solved: Names = (),
    held: Names = (),
) -> TimedPlan:
    """Return what an operator best saves for its gradient by ``wrt``: the :class:`GradientPlan`
    whose two kernels take the least time together, of those that keep at most ``memory`` bytes.

    Example::

        best_gradient_plan("attention b=1 h=2 i=512 j=512 d=64", "q,k,v").plan.saved

    Measured times come before predicted ones; ``tilewright tune ... --gradient q,k,v --saved
    search`` measures all. ``outputs``, ``solved`` and ``held`` are as for
    :func:`spaces.workloads.gradients.gradient_plans`. Raises :class:`InputError` for bad input, for
    plans that all keep more, and where no template serves one.
    """
    machine = as_target(target)
    possible = gradient_plans(of, wrt, outputs, solved, held, costs_on(machine))
    found = served_plans(possible, machine, memory)
    return min((timed(each, machine, database) for each in found), key=lambda each: each.rank)


def costs_on(target: Target) -> Costs:
    """Return what predicts the costs of programs on a target."""
    return ON_CPU if target.kind == "cpu" else ON_GPU


def served_plans(
    found: Sequence[GradientPlan], target: Target, memory: int | None
) -> list[GradientPlan]:
    """Return the plans that keep at most ``memory`` bytes and have kernels on a target;
    :class:`InputError` if there is none."""
    small = [plan for plan in found if memory is None or plan.bytes <= memory]
    if not small:
        least = min(plan.bytes for plan in found)
        raise InputError(f"memory={shown(memory)} is too little; allowed: {least} bytes or more")
    reasons: list[InputError] = []
    served = [plan for plan in small if _is_served(plan, target, reasons)]
    if not served:
        raise reasons[0]
    return served


def _is_served(plan: GradientPlan, target: Target, reasons: list[InputError]) -> bool:
    """Tell whether both programs have kernels; if not, note the reason."""
    try:
        for program in (plan.forward, plan.backward):
            space_for(workload_of(program), target)
    except InputError as reason:
        reasons.append(reason)
        return False
    return True


def timed(
    plan: GradientPlan, target: Target, database: Database | str | Path | None = Default.DATABASE
) -> TimedPlan:
    """Return a plan with what is known of its programs."""
    forward, backward = (
        query(workload_of(program), target, database) for program in (plan.forward, plan.backward)
    )
    return TimedPlan(plan, forward, backward)


def suite_of(found: Sequence[GradientPlan]) -> Suite:
    """Return the programs of some plans as a suite, each of them once."""
    members: dict[str, Member] = {}
    for plan in found:
        names = ",".join(plan.saved)
        given = f"gradient, of {names}" if names else "gradient"
        without = f" without {','.join(plan.solved)}" if plan.solved else ""
        for program, label in (
            (plan.forward, f"forward, saving {names}" if names else "forward"),
            (plan.backward, given + without),
        ):
            made = workload_of(program)
            members.setdefault(made.key, Member(made, name=label))
    return Suite("what a gradient may save", tuple(members.values()))

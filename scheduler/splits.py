"""Decide what the forward pass of an operator saves for its gradient.

Every :class:`Split` is a pair of workloads, tuned and looked up like any other. Their times on
record, or predicted ones, say which split is the fastest of those that keep few enough bytes.
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
from tilewright.spaces.workloads.gradients import Names, splits
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.splits import Split
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.spaces.language import Program


@dataclass(frozen=True)
class TimedSplit:
    """A split with the best known schedules of its two programs."""

    split: Split
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
        return not self.is_measured, seconds, self.split.bytes


def best_split(
    of: Workload | Program | str,
    wrt: Names,
    target: Target | str = Default.TARGET,
    database: Database | str | Path | None = Default.DATABASE,
    memory: int | None = None,
    outputs: Names | None = None,
    solved: Names = (),
    held: Names = (),
) -> TimedSplit:
    """Return what an operator best saves for its gradient by ``wrt``: the :class:`Split` whose two
    kernels take the least time together, of those that keep at most ``memory`` bytes.

    Example::

        best_split("attention b=1 h=2 i=512 j=512 d=64", "q,k,v").split.saved

    Measured times come before predicted ones; ``tilewright tune ... --gradient q,k,v --saved
    search`` measures all. ``outputs``, ``solved`` and ``held`` are as for
    :func:`spaces.workloads.gradients.splits`. Raises :class:`InputError` for bad input, for splits
    that all keep more, and where no template serves one.
    """
    machine = as_target(target)
    possible = splits(of, wrt, outputs, solved, held, costs_on(machine))
    found = served_splits(possible, machine, memory)
    return min((timed(each, machine, database) for each in found), key=lambda each: each.rank)


def costs_on(target: Target) -> Costs:
    """Return what predicts the costs of programs on a target."""
    return ON_CPU if target.kind == "cpu" else ON_GPU


def served_splits(found: Sequence[Split], target: Target, memory: int | None) -> list[Split]:
    """Return the splits that keep at most ``memory`` bytes and have kernels on a target;
    :class:`InputError` if there is none."""
    small = [split for split in found if memory is None or split.bytes <= memory]
    if not small:
        least = min(split.bytes for split in found)
        raise InputError(f"memory={shown(memory)} is too little; allowed: {least} bytes or more")
    reasons: list[InputError] = []
    served = [split for split in small if _is_served(split, target, reasons)]
    if not served:
        raise reasons[0]
    return served


def _is_served(split: Split, target: Target, reasons: list[InputError]) -> bool:
    """Tell whether both programs have kernels; if not, note the reason."""
    try:
        for program in (split.forward, split.backward):
            space_for(workload_of(program), target)
    except InputError as reason:
        reasons.append(reason)
        return False
    return True


def timed(
    split: Split, target: Target, database: Database | str | Path | None = Default.DATABASE
) -> TimedSplit:
    """Return a split with what is known of its programs."""
    forward, backward = (
        query(workload_of(program), target, database) for program in (split.forward, split.backward)
    )
    return TimedSplit(split, forward, backward)


def suite_of(found: Sequence[Split]) -> Suite:
    """Return the programs of some splits as a suite, each of them once."""
    members: dict[str, Member] = {}
    for split in found:
        names = ",".join(split.saved)
        given = f"gradient, of {names}" if names else "gradient"
        without = f" without {','.join(split.solved)}" if split.solved else ""
        for program, label in (
            (split.forward, f"forward, saving {names}" if names else "forward"),
            (split.backward, given + without),
        ):
            made = workload_of(program)
            members.setdefault(made.key, Member(made, name=label))
    return Suite("what a gradient may save", tuple(members.values()))

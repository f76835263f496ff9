"""The time of a kernel of each size, from records and estimates; and torch's, from its records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from tilewright.scheduler.dispatch.family import Family
from tilewright.scheduler.dispatch.open_kernels import open_seconds
from tilewright.scheduler.dispatch.open_ranges import best_ranges, range_seconds
from tilewright.scheduler.dispatch.profile import Profile, doubled_sizes
from tilewright.scheduler.dispatch.serving import Extra, extra_for
from tilewright.scheduler.dispatch.table import TableKernel
from tilewright.scheduler.dispatch.timing import FEW, times_from_memory
from tilewright.scheduler.predictions import ranked
from tilewright.spaces.errors import InputError
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database

MOST_MEASURED = 24
"""Measured sizes that are considered, at most."""
COMPARED_WITH_TORCH = "torch.compile"
"""The command of runs that compare a kernel with torch."""
Comparison = tuple[Workload, float]
"""A workload, and the time of torch as a multiple of the kernel's."""


def usual_sizes(profile: Profile) -> list[int]:
    """Return the sizes of kernels that are worth a search: the ends of ranges, the powers of two,
    and the numbers halfway between two of these, in the order of the sizes."""
    ends = {end for each in profile.ranges for end in (each.first, each.last)}
    return sorted({*ends, *doubled_sizes(profile.last)})


def known_kernels(
    family: Family, profile: Profile, target: Target, database: Database | None
) -> list[TableKernel]:
    """Return the best kernels of which the database has records, by size."""
    if database is None:
        return []
    sizes = recorded_sizes(family, profile.last, recorded(target, database))
    return kernels_of(family, sizes, profile.last, target, database)


def kernels_of(
    family: Family, sizes: Iterable[int], last: int, target: Target, database: Database
) -> list[TableKernel]:
    """Return the best kernels of these ``sizes``, of which the database has records."""
    extra = extra_for(family, last, target)
    found = [_best_kernel(family, size, target, database, extra) for size in sizes]
    kernels = [kernel for kernel in found if kernel is not None]
    return [kernels[place] for place in _spread(len(kernels), MOST_MEASURED)]


def _best_kernel(
    family: Family, size: int, target: Target, database: Database, extra: Extra
) -> TableKernel | None:
    """Return the best kernel of a size: of those timed from memory, and of the best record if it is
    not among them. Fewer rows are served by whichever of the best schedules is fastest then."""
    space = space_for(family.at(size), target, Numerics.STRICT)
    records = database.best_few(space.workload, target, FEW, space.versions)
    timed = times_from_memory(space.workload, target, database)
    found: list[TableKernel] = []
    schedules: list[Schedule] = []
    for record in records:
        schedule, score = space.ordered(record.schedule), record.measurement.score
        if record.doubted or score is None or schedule not in space:
            continue
        schedules.append(schedule)
        if schedule.key in timed:
            found.append(TableKernel(size, timed[schedule.key], schedule))
        elif record is records[0]:
            found.append(TableKernel(size, extra.seconds(score), schedule))
    if not found:
        return None
    best = min(found, key=lambda kernel: kernel.seconds)
    fewer = open_seconds(family, size, schedules, target, database)
    opened = best_ranges(fewer)
    return replace(best, opened=opened, fewer=range_seconds(opened, fewer))


def recorded(target: Target, database: Database) -> list[Workload]:
    """Return the workloads of which there are attempts on a target."""
    return [workload for workload, where in database.pairs() if where == target]


def recorded_sizes(family: Family, last: int, workloads: Iterable[Workload]) -> list[int]:
    """Return the sizes up to the ``last`` one at which workloads are of the family."""
    return sorted({size for each in workloads for size in _sizes_of(each, family, last)})


def _sizes_of(workload: Workload, family: Family, last: int) -> list[int]:
    """Return the size at which a workload is of the family; none if it is of another one."""
    found: list[int] = []
    if len(workload.operands) != len(family.inputs) + len(family.outputs):
        return found
    for size in {each for each in workload.extents.values() if each <= last}:
        with suppress(InputError):  # a size that only others have
            if family.at(size) == workload:
                found.append(size)
    return found


def _spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of ``count`` places, from the first to the last."""
    if count <= most:
        return list(range(count))
    return sorted(set(np.linspace(0, count - 1, most).round().astype(int).tolist()))


def with_estimates(
    family: Family,
    profile: Profile,
    target: Target,
    known: Sequence[TableKernel],
    sizes: Iterable[int],
    timed: Container[int] | None = None,
) -> list[TableKernel]:
    """Return the known kernels and those of other ``sizes``, by size.

    The latter's latencies are the roofline's least, times what measured ones differ from it at the
    nearest sizes. If ``timed`` sizes are given, kernels of others that may be open are taken to be
    as fast with fewer rows as kernels of these are, down to where other templates are faster.
    """
    extra = extra_for(family, profile.last, target)
    estimates: dict[int, float] = {}
    opened: dict[int, str] = {}
    for size in sorted({*sizes, *(each.size for each in known)}):
        space = space_for(family.at(size), target, Numerics.STRICT)
        best = ranked(space)
        if best and isfinite(best[0][1]):
            schedule = best[0][0]
            estimates[size] = extra.seconds(best[0][1])
            if space.why_not_open(schedule, family.own_axis) is None:
                opened[size] = schedule.template
    both = [each for each in known if each.size in estimates]
    at = np.log([each.size for each in both] or [1])
    ratios = np.log([each.seconds / estimates[each.size] for each in both] or [1.0])
    found = {each.size: each for each in known}
    for size, seconds in estimates.items():
        ratio = float(np.exp(np.interp(np.log(size), at, ratios)))
        found.setdefault(size, TableKernel(size, seconds * ratio))
    if not found:
        raise InputError(
            f"no time of {family} is known or can be estimated; allowed: tune it first"
        )
    kernels = [found[size] for size in sorted(found)]
    if timed is None:
        return kernels
    return [each if each.size in timed else _hoped(each, kernels, opened) for each in kernels]


def _hoped(
    kernel: TableKernel, kernels: Sequence[TableKernel], opened: Mapping[int, str]
) -> TableKernel:
    """Return a kernel as an open one, if it may be: ``opened`` has the templates of those that may,
    by size."""
    template = opened.get(kernel.size)
    if template is None:
        return kernel
    others = [each.size for each in kernels if opened.get(each.size) != template]
    least = 1 + max((size for size in others if size < kernel.size), default=0)
    at = np.arange(kernel.size + 1)
    every = np.interp(at, [each.size for each in kernels], [each.seconds for each in kernels])
    return replace(kernel, fewer=(*np.where(at < least, np.inf, every).tolist(),))


@dataclass(frozen=True)
class Torch:
    """The times of torch, as multiples of our kernel's, at the sizes at which both were timed in
    turns."""

    sizes: tuple[int, ...] = ()
    ratios: tuple[float, ...] = ()

    def seconds(self, own: np.ndarray) -> np.ndarray:
        """Return the time of torch by size, where ``own`` is that of a kernel of this size;
        infinite outside of the sizes at which torch was timed."""
        at = np.arange(len(own))
        if not self.sizes:
            return np.full(len(own), np.inf)
        logs = np.interp(np.log(np.maximum(at, 1)), np.log(self.sizes), np.log(self.ratios))
        within = (at >= self.sizes[0]) & (at <= self.sizes[-1])
        return np.where(within, own * np.exp(logs), np.inf)


def known_torch(
    family: Family, profile: Profile, target: Target, database: Database | None
) -> Torch:
    """Return the comparisons with torch on record, the latest of each size."""
    if database is None:
        return Torch()
    return torch_beside(family, profile.last, comparisons(target, database))


def comparisons(target: Target, database: Database) -> list[Comparison]:
    """Return all comparisons with torch on a target, oldest first."""
    found = []
    for run in database.runs():
        ours = run.configuration.get("ours_seconds")
        if run.command != COMPARED_WITH_TORCH or run.target != target or not run.library_seconds:
            continue
        if isinstance(ours, float) and 0 < ours < float("inf"):
            found.append((run.workload, run.library_seconds / ours))
    return found


def torch_beside(family: Family, last: int, known: Iterable[Comparison]) -> Torch:
    """Return the times of torch by the comparisons at sizes up to the ``last`` one."""
    found: dict[int, float] = {}
    for workload, ratio in known:
        for size in _sizes_of(workload, family, last):
            found[size] = ratio
    ordered = sorted(found)
    return Torch(tuple(ordered), tuple(found[size] for size in ordered))

"""Make a dispatch table from a profile and what a database knows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tilewright.scheduler.defaults import local_executor
from tilewright.scheduler.dispatch.costs import (
    Torch,
    known_kernels,
    known_torch,
    usual_sizes,
    with_estimates,
)
from tilewright.scheduler.dispatch.family import Described, Family, family_of, open_axis
from tilewright.scheduler.dispatch.keeping import keep
from tilewright.scheduler.dispatch.open_kernels import openable, time_open, why_not_open
from tilewright.scheduler.dispatch.profile import Profile, as_profile
from tilewright.scheduler.dispatch.selecting import select
from tilewright.scheduler.dispatch.serving import Times, choices, extra_for, serving_seconds
from tilewright.scheduler.dispatch.table import MOST_KERNELS, Row, Table, TableKernel
from tilewright.scheduler.dispatch.timing import best_schedules, time_from_memory
from tilewright.scheduler.opening import opened
from tilewright.scheduler.turns import GAIN
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.validation.checks import positive, whole
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database

KERNELS = 6
FURTHER = 2
"""Searches beyond one for each kernel, for sizes that turn out better once others are measured."""
SECONDS_EACH = 60.0


@dataclass(frozen=True)
class Request:
    """A request for a table."""

    family: Family
    profile: Profile
    target: Target
    kernels: int


def dispatch_table(
    workload: Workload | str | Described,
    profile: Profile | str,
    database: Database | str | Path | None = Default.DATABASE,
    kernels: int = KERNELS,
    axis: str | None = None,
    target: Target | str = Default.TARGET,
    kept: bool = False,
) -> Table:
    """Return the table of at most ``kernels`` kernels with the least expected regret, from what the
    database knows now; ``kept`` there for compiled models, if it can be written.

    Latencies that are not on record are estimates. Without a database all are; one without any
    record of these workloads raises :class:`InputError`, as malformed input does.
    """
    request = _request(workload, profile, kernels, axis, target)
    with nullcontext() if database is None else opened(database, create=False) as known:
        found = known_kernels(request.family, request.profile, request.target, known)
        if known is not None and not found:
            raise InputError(
                f"no kernel of {brief(str(request.family), 1, 80)} is on record up to "
                f"{request.family.axis}={request.profile.last}; allowed: tune some (--tune), or "
                "another database"
            )
        table = _made(request, known, found)
        if kept and known is not None:
            with suppress(InputError):
                keep(table, known)
        return table


def tuned_table(
    workload: Workload | str | Described,
    profile: Profile | str,
    database: Database | str | Path = Default.DATABASE,
    kernels: int = KERNELS,
    axis: str | None = None,
    target: Target | str = Default.TARGET,
    seconds: float | None = None,
    progress: bool = False,
) -> Table:
    """Return what :func:`dispatch_table` does, where the kernels that it selects are tuned first,
    and the best of each size are timed in turns from memory.

    There are at most ``kernels + FURTHER`` searches, which share the ``seconds`` (by default
    ``SECONDS_EACH`` for each kernel). With ``progress`` their course is shown. The database keeps
    the table for compiled models.
    """
    from tilewright.scheduler.suites.suite import Member, Suite
    from tilewright.scheduler.suites.tune import tune_suite

    request = _request(workload, profile, kernels, axis, target)
    left = request.kernels + FURTHER
    seconds = SECONDS_EACH * request.kernels if seconds is None else seconds
    each = positive("seconds", seconds) / left
    timed: set[int] = set()
    with opened(database) as known:
        while True:
            found = known_kernels(request.family, request.profile, request.target, known)
            table = _made(request, known, found, not left, timed)
            new = [kernel.size for kernel in table.kernels if kernel.schedule is None][:left]
            untimed = {kernel.size for kernel in table.kernels} - timed
            if not new and not untimed:
                break
            if new:
                suite = Suite("dispatch", tuple(Member(request.family.at(size)) for size in new))
                share = each * len(new)
                tune_suite(suite, request.target, known, seconds=share, progress=progress)
                left -= len(new)
            _time(request, sorted({*new, *untimed}), known)
            timed |= untimed
        if all(kernel.schedule is None for kernel in table.kernels):
            raise InputError(f"no kernel was measured in {seconds:g} s; allowed: more seconds")
        keep(table, known)
    return table


def _time(request: Request, sizes: Sequence[int], database: Database) -> None:
    """Time the best kernels of these sizes from memory, with fewer rows as well. Those of a GPU
    were read from memory when they were measured."""
    family, target = request.family, request.target
    schedules = {size: best_schedules(family.at(size), target, database) for size in sizes}
    opened = {size: openable(family, size, own, target) for size, own in schedules.items()}
    if isinstance(target, CpuTarget):
        for size, own in opened.items():
            time_from_memory(family.at(size), target, database)
            time_open(family, size, own, target, database)
    elif any(opened.values()):
        with closing(local_executor(target)) as executor:
            for size, own in opened.items():
                time_open(family, size, own, target, database, executor)


def _request(
    workload: Workload | str | Described,
    profile: Profile | str,
    kernels: int,
    axis: str | None,
    target: Target | str,
) -> Request:
    """Return a request about an axis, by default the open one."""
    count = whole("kernels", kernels, 1, MOST_KERNELS)
    sizes, machine = as_profile(profile), as_target(target)
    axis = open_axis(workload) if axis is None else axis
    family = family_of(workload, axis, sizes)
    if not family.independent and (reason := why_not_open(family, sizes.last, machine)):
        raise InputError(f"calls cannot be cut along {axis}, and {reason}; allowed: other axes")
    return Request(family, sizes, machine, count)


def _made(
    request: Request,
    database: Database | None,
    known: Sequence[TableKernel],
    of_records: bool = False,
    timed: Container[int] | None = None,
) -> Table:
    """Return the table, of the ``known`` kernels only if asked for and if there are any. Kernels
    of other sizes than the ``timed`` may be open, if such are given."""
    about = (request.family, request.profile, request.target)
    every = with_estimates(*about, known, usual_sizes(request.profile), timed)
    torch = known_torch(*about, database)
    return selected(request, every, torch, known if of_records and known else every)


def selected(
    request: Request,
    every: Sequence[TableKernel],
    torch: Torch,
    offered: Sequence[TableKernel],
) -> Table:
    """Return the table of the best of the ``offered`` kernels. Its losses are told by the times
    of ``every`` kernel."""
    family, profile, last = request.family, request.profile, request.profile.last
    extra = extra_for(family, last, request.target)
    opened = {each.size: each.fewer for each in offered if each.fewer}
    times = Times({each.size: each.seconds for each in offered}, opened)
    sizes = sorted(times.seconds)
    sets = [(size,) for size in sizes] + list(combinations(sizes, 2))
    serving = serving_seconds(sets, times, last, extra)
    known_at, known_seconds = zip(*((each.size, each.seconds) for each in every), strict=True)
    own = np.interp(np.arange(last + 1), known_at, known_seconds)
    own = np.minimum(own, serving.min(axis=0))  # the time of a kernel for this very size
    _check_served(family, serving)
    by_torch = torch.seconds(own) * GAIN
    fastest = np.minimum(own, by_torch)
    weights = profile.weights
    columns = np.array(list(weights))
    plans = [[sizes.index(size) for size in each] for each in sets]
    regrets = serving[:, columns] / fastest[columns] - 1
    if np.isfinite(by_torch[columns]).any():
        plans, regrets = (
            [*plans, []],
            np.vstack([regrets, by_torch[columns] / fastest[columns] - 1]),
        )
    chosen = select(regrets, plans, np.array([*weights.values()]), request.kernels)
    used_sizes = [sizes[place] for place in chosen] or [sizes[-1]]
    final = serving_seconds([used_sizes], times, last, extra)[0]
    torch_wins = by_torch < final
    regret = np.minimum(final, by_torch)[1:] / fastest[1:] - 1
    chosen_sizes = choices(used_sizes, times, last, extra)
    rows = _rows(chosen_sizes[1:], torch_wins[1:].tolist())
    used = {row.size for row in rows}
    return Table(
        family,
        request.target,
        profile,
        tuple(each for each in offered if each.size in used),
        rows,
        float(sum(weight * regret[size - 1] for size, weight in weights.items())),
        float(regret.max()),
        1 + int(regret.argmax()),
    )


def _check_served(family: Family, serving: np.ndarray) -> None:
    """Raise :class:`InputError` for a size that no kernel serves; ``serving`` has the times of sets
    of kernels by size."""
    alone = np.flatnonzero(~np.isfinite(serving).any(axis=0))
    if len(alone):
        raise InputError(
            f"no kernel on record takes {family.axis}={alone[0]}, and calls cannot be cut along "
            f"{family.axis}; allowed: tune kernels that take its size (--tune)"
        )


def _rows(sizes: Sequence[int], by_torch: Sequence[bool]) -> tuple[Row, ...]:
    """Neighbouring sizes that are served alike, together."""
    pairs = enumerate(zip(sizes, by_torch, strict=True), start=1)
    found = []
    for (size, torch), group in groupby(pairs, key=lambda each: each[1]):
        members = [place for place, _ in group]
        found.append(Row(members[0], members[-1], size, torch))
    return tuple(found)

"""Time open kernels on a device, as searches time kernels: verified, in turns, from memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.interfaces import Executor
from tilewright.measure.records.measurement import Candidate, Job, new_job_id
from tilewright.scheduler.dispatch.family import Family
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target


def verifiable(family: Family, sizes: Iterable[int]) -> list[int]:
    """Return those numbers of rows with which kernels can be verified, in order. One key alone is
    none of attention's: its weight is 1, whatever its score."""
    return [size for size in sorted(sizes) if _can_be_verified(family, size)]


def _can_be_verified(family: Family, size: int) -> bool:
    try:
        check_sensitivity(family.at(size))
    except InputError:
        return False
    return True


def device_seconds(
    family: Family,
    size: int,
    schedules: Sequence[Schedule],
    sizes: Sequence[int],
    target: Target,
    executor: Executor,
) -> dict[tuple[Schedule, int], float]:
    """Return the seconds of the open kernels of up to ``size`` rows with each number of ``sizes``.

    With each of them a kernel is verified as one of the workload of so many rows. There are no
    times of one that is wrong or fails with any of them.
    """
    space = space_for(family.at(size), target)
    left = {each: space.lower_open(each, family.own_axis) for each in schedules}
    found: dict[tuple[Schedule, int], float] = {}
    for rows in sorted(sizes, reverse=True):
        if not left:
            break
        job = Job(new_job_id(), family.at(rows), target)
        seconds = measured(job, {each: kernel.at(rows) for each, kernel in left.items()}, executor)
        left = {each: left[each] for each in seconds}
        found.update({(each, rows): value for each, value in seconds.items()})
    return {key: value for key, value in found.items() if key[0] in left}


def measured(
    job: Job, kernels: Mapping[Schedule, Kernel], executor: Executor
) -> dict[Schedule, float]:
    """Return the seconds of those kernels of a job that are right."""
    executor.submit(job, [Candidate(job, each, kernel) for each, kernel in kernels.items()])
    found = {}
    while executor.pending(job):
        for result in executor.results(1.0, job):
            if result.measurement.score is not None:
                found[result.candidate.schedule] = result.measurement.score
    return {each: found[each] for each in kernels if each in found}

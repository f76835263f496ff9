"""Kernels that take any number of rows at each call, in dispatch tables: check them, time them.

Such a kernel of ``s`` rows serves calls of fewer rows without copies. It is made from the schedule
of one of the few best kernels of ``s`` rows. On a CPU its results must be those of that kernel,
which was verified when it was measured, to the last bit; elsewhere it is verified with each number
of rows. The times of a few numbers of rows are kept as a run of the workload; those between are
interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.dispatch.family import Family, rows
from tilewright.scheduler.dispatch.measuring import device_seconds, verifiable
from tilewright.scheduler.dispatch.profile import doubled_sizes
from tilewright.scheduler.dispatch.timing import in_turns, record, recorded, rotation
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.scheduler.functions.kernel_function import RefusedKernelError
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.scheduler.predictions import ranked
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.calling import calling_of

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.interfaces import Executor

CHECKED = (1, 2, 3, 5, 7, 11, 13, 29)
"""Numbers of rows at which results are compared, beside the largest and one less."""
Arrays = Sequence[np.ndarray]


def open_function(
    family: Family, size: int, schedule: Schedule, target: Target
) -> OpenFunction | None:
    """Return the kernel of ``size`` rows, or fewer; None if the schedule has no such kernel."""
    space = space_for(family.at(size), target)
    if space.why_not_open(schedule, family.own_axis):
        return None
    try:
        return OpenFunction(space, schedule, family.own_axis, family.inputs, family.outputs)
    except RefusedKernelError:
        return None


def openable(
    family: Family, size: int, schedules: Iterable[Schedule], target: Target
) -> list[Schedule]:
    """Return those of the schedules of ``size`` rows that have open kernels."""
    space = space_for(family.at(size), target)
    return [each for each in schedules if space.why_not_open(each, family.own_axis) is None]


def why_not_open(family: Family, size: int, target: Target) -> str | None:
    """Say why the most promising schedule of ``size`` rows has no open kernel; None if it has
    one."""
    space = space_for(family.at(size), target)
    return next((space.why_not_open(each, family.own_axis) for each, _ in ranked(space)), None)


def time_open(
    family: Family,
    size: int,
    schedules: Sequence[Schedule],
    target: Target,
    database: Database,
    executor: Executor | None = None,
) -> None:
    """Time the open kernels of schedules in turns from memory, and record the times of several
    numbers of rows; none of a kernel that does not exist, or that is wrong. A CPU is this machine,
    and kernels for other targets run on an ``executor``."""
    sizes = sorted({*doubled_sizes(size), size})
    if isinstance(target, CpuTarget):
        seconds = _cpu_seconds(family, size, schedules, sizes, target)
    else:
        assert executor is not None
        sizes = verifiable(family, {*sizes, max(1, size - 1)})
        seconds = device_seconds(family, size, schedules, sizes, target, executor)
    for schedule in dict.fromkeys(schedule for schedule, _ in seconds):
        told = {"schedule": schedule.key, "axis": family.own_axis, "rows": sizes}
        told["open_seconds"] = [seconds[schedule, count] for count in sizes]
        record(family.at(size), target, database, told)


def _cpu_seconds(
    family: Family,
    size: int,
    schedules: Sequence[Schedule],
    sizes: Sequence[int],
    target: CpuTarget,
) -> dict[tuple[Schedule, int], float]:
    """Return the seconds of right open kernels of schedules with each number of rows."""
    sets = rotation(family.at(size), target)
    made = {each: _right_function(family, size, each, target, sets[0]) for each in schedules}
    calls: dict[tuple[Schedule, int], Callable[..., Any]] = {
        (schedule, count): partial(_call_first, call, family, count)
        for schedule, call in made.items()
        if call is not None
        for count in sizes
    }
    return in_turns(calls, sets, target) if calls else {}


def _checked(size: int) -> set[int]:
    """Return the numbers of rows at which results are compared."""
    return {each for each in (*CHECKED, size - 1, size) if 1 <= each <= size}


def open_seconds(
    family: Family, size: int, schedules: Iterable[Schedule], target: Target, database: Database
) -> dict[Schedule, tuple[float, ...]]:
    """Return the times of 0 to ``size`` rows of those open kernels that were timed."""
    found: dict[str, tuple[float, ...]] = {}
    for told in recorded(family.at(size), target, database):
        known, key = _times(told.get("rows"), told.get("open_seconds")), told.get("schedule")
        if known is not None and isinstance(key, str) and told.get("axis") == family.own_axis:
            found[key] = tuple(np.interp(np.arange(size + 1), *known).tolist())
    return {each: found[each.key] for each in schedules if each.key in found}


def _times(counts: object, seconds: object) -> tuple[list[int], list[float]] | None:
    """Return rising numbers of rows and as many times; None for anything else."""
    if not isinstance(counts, list) or not isinstance(seconds, list) or not counts:
        return None
    whole = all(isinstance(each, int) for each in counts)
    times = all(isinstance(each, float) and 0 < each < float("inf") for each in seconds)
    rising = whole and times and counts == sorted(set(counts)) and len(counts) == len(seconds)
    return (counts, seconds) if rising else None


def _right_function(
    family: Family, size: int, schedule: Schedule, target: CpuTarget, arrays: Arrays
) -> OpenFunction | None:
    """Return the open kernel of a schedule; None if there is none, or if it is wrong."""
    call = open_function(family, size, schedule, target)
    if call is None:
        return None
    whole = CpuFunction(space_for(family.at(size), target), schedule, Provenance.MEASURED)
    return call if _is_right(call, whole, family, arrays, size) else None


def _call_first(call: OpenFunction, family: Family, count: int, *arrays: np.ndarray) -> Any:
    """Call a kernel on the first rows of arrays."""
    return call(*_first(arrays, family.inputs, count))


def _first(arrays: Arrays, places: Sequence[int | None], count: int) -> list[np.ndarray]:
    return [
        array if place is None else array[rows(place, 0, count)]
        for array, place in zip(arrays, places, strict=True)
    ]


def _is_right(
    call: OpenFunction, whole: CpuFunction, family: Family, arrays: Arrays, size: int
) -> bool:
    """Return True if a kernel's rows are those of the kernel of all rows; of the program, if rows
    depend on each other."""
    counts = _checked(size)
    if not family.independent:
        return all(_is_exact(call, family, arrays, count) for count in counts)
    every = _outputs(whole(*arrays))
    for count in counts:
        found = _outputs(_call_first(call, family, count, *arrays))
        wanted = _first(every, family.outputs, count)
        if any(own.tobytes() != part.tobytes() for own, part in zip(found, wanted, strict=True)):
            return False
    return True


def _is_exact(call: OpenFunction, family: Family, arrays: Arrays, count: int) -> bool:
    """Return True if a kernel's results for so many points are those of the program, as far as
    rounding allows."""
    workload = family.at(count)
    given = _first(arrays, family.inputs, count)
    names = (array.name for array in calling_of(workload).inputs)
    bounds = allowed(workload.program, dict(zip(names, given, strict=True)))
    outputs = zip(workload.program.outputs, _outputs(call(*given)), strict=True)
    return all(agrees(found, *bounds[output.name]).all() for output, found in outputs)


def _outputs(found: Any) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)

"""Kernels that take any number of rows at each call, in dispatch tables: check them, time them.

Such a kernel of ``s`` rows serves calls of fewer rows without copies. It is made from the schedule
of the best kernel of ``s`` rows. Its results must be those of that kernel, which was verified when
it was measured, to the last bit. The times of a few numbers of rows are kept as a run of the
workload; those between are interpolated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.dispatch.family import Family
from tilewright.scheduler.dispatch.timing import COMMAND, in_turns, record, rotation, session_of
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.scheduler.functions.kernel_function import RefusedKernelError
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.measure.database import Database

CHECKED = (1, 2, 3, 5, 7, 11, 13, 29)
"""Numbers of rows at which results are compared, beside the largest and one less."""
Arrays = Sequence[np.ndarray]


def open_function(
    family: Family, size: int, schedule: Schedule, target: Target
) -> OpenFunction | None:
    """Return the kernel of ``size`` rows, or fewer; None if the schedule has no such kernel."""
    space = space_for(family.at(size), target)
    if not isinstance(target, CpuTarget) or space.why_not_open(schedule, family.axis):
        return None
    try:
        return OpenFunction(space, schedule, family.axis, family.inputs, family.outputs)
    except RefusedKernelError:
        return None


def time_open(
    family: Family, size: int, schedule: Schedule, target: CpuTarget, database: Database
) -> None:
    """Time the open kernel of a schedule on this machine from memory, and record the times of
    several numbers of rows; nothing if there is no such kernel, or if it is wrong."""
    call = open_function(family, size, schedule, target)
    if call is None:
        return
    workload = family.at(size)
    sets = rotation(workload, target)
    whole = CpuFunction(space_for(workload, target), schedule, Provenance.MEASURED)
    if not _is_right(call, whole, family, sets[0], size):
        return
    sizes = _timed_sizes(size)
    calls: dict[int, Callable[..., Any]] = {
        rows: partial(_call_first, call, family, rows) for rows in sizes
    }
    seconds = in_turns(calls, sets, target)
    told = {"schedule": schedule.key, "axis": family.axis, "rows": sizes}
    told["open_seconds"] = [seconds[rows] for rows in sizes]
    record(workload, target, database, told, time.time())


def open_seconds(
    family: Family, size: int, schedule: Schedule, target: Target, database: Database
) -> tuple[float, ...]:
    """Return the times of an open kernel, of 0 to ``size`` rows; empty if it was not timed."""
    found: tuple[float, ...] = ()
    for run in database.runs(session_of(family.at(size))):
        told = run.configuration
        known = _times(told.get("rows"), told.get("open_seconds"))
        if run.command != COMMAND or run.target != target or known is None:
            continue
        if told.get("schedule") == schedule.key and told.get("axis") == family.axis:
            found = tuple(np.interp(np.arange(size + 1), *known).tolist())
    return found


def _times(rows: object, seconds: object) -> tuple[list[int], list[float]] | None:
    """Return rising numbers of rows and as many times; None for anything else."""
    if not isinstance(rows, list) or not isinstance(seconds, list) or not rows:
        return None
    whole = all(isinstance(each, int) for each in rows)
    times = all(isinstance(each, float) and 0 < each < float("inf") for each in seconds)
    rising = whole and times and rows == sorted(set(rows)) and len(rows) == len(seconds)
    return (rows, seconds) if rising else None


def _timed_sizes(size: int) -> list[int]:
    """Return the powers of two, the numbers halfway between two, and the largest."""
    powers = [1 << each for each in range(size.bit_length())]
    return sorted({each for p in powers for each in (p, p + p // 2) if each <= size} | {size})


def _call_first(call: OpenFunction, family: Family, rows: int, *arrays: np.ndarray) -> Any:
    """Call a kernel on the first rows of arrays."""
    return call(*_first(family, rows, arrays))


def _first(family: Family, rows: int, arrays: Arrays) -> list[np.ndarray]:
    return [
        array if place is None else array[(*[slice(None)] * place, slice(rows))]
        for array, place in zip(arrays, family.inputs, strict=True)
    ]


def _is_right(
    call: OpenFunction, whole: CpuFunction, family: Family, arrays: Arrays, size: int
) -> bool:
    """Return True if a kernel's rows are those of the kernel of all rows."""
    wanted = _outputs(whole(*arrays))
    for rows in {each for each in (*CHECKED, size - 1, size) if 1 <= each <= size}:
        found = _outputs(call(*_first(family, rows, arrays)))
        for own, every, place in zip(found, wanted, family.outputs, strict=True):
            part = every if place is None else every[(*[slice(None)] * place, slice(rows))]
            if own.tobytes() != part.tobytes():
                return False
    return True


def _outputs(found: Any) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)

"""Time the few best kernels of a size from memory: as in a model, where other layers have run since
the last call.

Searches time a product whose arrays are in a cache. A kernel that wins there may lose where weights
come from memory, most of all with few rows. So the few best are called in turns, on other arrays at
each call. The database keeps what was found as runs of the workload.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any, TypeVar

import numpy as np

from tilewright.measure.database import Database
from tilewright.measure.records.run import note
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.functions.kernel_function import RefusedKernelError
from tilewright.scheduler.turns import rounds, sets_beyond
from tilewright.spaces.backends import backend
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

COMMAND = "tilewright dispatch"
FEW = 4
"""Schedules of a size that are timed, at most: the best on record."""
SECONDS, LEAST_ROUNDS = 1.5, 5
"""Rounds at least, and as many more as there are seconds for."""

Arrays = Sequence[np.ndarray]
Name = TypeVar("Name", bound=Hashable)


def time_from_memory(workload: Workload, target: CpuTarget, database: Database) -> None:
    """Time the best schedules of a workload on this machine, and record the times."""
    space = space_for(workload, target)
    function = backend(target.kind).part("function")
    built = {}
    for schedule in best_schedules(workload, target, database):
        with suppress(RefusedKernelError):  # by this compiler, but not by the one of the record
            built[schedule] = function(space, schedule, Provenance.MEASURED)
    if not built:
        return
    for schedule, seconds in in_turns(built, rotation(workload, target), target).items():
        told = {"schedule": schedule.key, "from_memory_seconds": seconds}
        record(workload, target, database, told)


def best_schedules(workload: Workload, target: Target, database: Database) -> list[Schedule]:
    """Return the few best schedules on record, best first."""
    space = space_for(workload, target)
    records = database.best_few(workload, target, FEW, space.versions)
    schedules = [space.ordered(record.schedule) for record in records if not record.doubted]
    return [schedule for schedule in schedules if schedule in space]


def in_turns(
    calls: Mapping[Name, Callable[..., Any]], sets: Sequence[Arrays], target: CpuTarget
) -> dict[Name, float]:
    """Return the median time of each call, by CPU time where kernels have one thread."""
    clock = time.thread_time if target.threads == 1 else time.perf_counter
    draw = random.Random(0)

    def timed(call: Callable[..., Any]) -> float:
        arrays = draw.choice(sets)
        began = clock()
        call(*arrays)
        return clock() - began

    found = rounds([partial(timed, call) for call in calls.values()], LEAST_ROUNDS, SECONDS)
    return {name: median(row[place] for row in found) for place, name in enumerate(calls)}


def rotation(workload: Workload, target: CpuTarget) -> list[Arrays]:
    """Return the sets of inputs, so many that a set has probably left the caches at its next
    turn."""
    size = sum(array.bytes for array in workload.inputs)
    return [_inputs(workload, seed) for seed in range(sets_beyond(target.l3_bytes, size))]


def _inputs(workload: Workload, seed: int) -> Arrays:
    """Random inputs in the order of calls."""
    if not workload.matmul:  # whose indices have limits
        return list(workload.make_inputs(seed).values())
    rng = np.random.default_rng(seed)
    return [_drawn(array, rng) for array in calling_of(workload).inputs]


def _drawn(array: Array, rng: np.random.Generator) -> np.ndarray:
    return array.array(rng.integers(-4, 5, array.shape).astype(np.float64))


def record(workload: Workload, target: Target, database: Database, told: Mapping[str, Any]) -> None:
    """Keep what was found of a workload's kernels as a note."""
    run = note(
        workload,
        target,
        session=_session(workload),
        command=COMMAND,
        configuration=told,
        reason="timed from memory",
    )
    database.begin_run(run)


def times_from_memory(workload: Workload, target: Target, database: Database) -> dict[str, float]:
    """Return the times on record by the keys of schedules, the latest of each."""
    found: dict[str, float] = {}
    for told in recorded(workload, target, database):
        key, value = told.get("schedule"), told.get("from_memory_seconds")
        if isinstance(key, str) and isinstance(value, float) and 0 < value < float("inf"):
            found[key] = value
    return found


def recorded(workload: Workload, target: Target, database: Database) -> Iterator[Mapping[str, Any]]:
    """Yield what :func:`record` was told of a workload's kernels on a target, oldest first."""
    for run in database.runs(_session(workload)):
        if run.command == COMMAND and run.target == target:
            yield run.configuration


def _session(workload: Workload) -> str:
    return f"dispatch {workload.digest}"

"""A case on a CPU: tuned, then timed in turns with torch.

All cases of a run share a database that is empty when it begins.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
import torch

from experiments.cpu_matmul.baselines import as_array, as_tensor
from experiments.cpu_matmul.timing import interleave
from experiments.operators.families.case import Case
from experiments.operators.families.windows import other_layout
from experiments.operators.references import references
from experiments.operators.summary import (
    COPY,
    COPY_OF_ARRAYS,
    FAST,
    OF_ARRAYS,
    OURS,
    UNTUNED,
    spread,
)
from experiments.rivals import compiled, usable
from tilewright.measure.cpu.cache_flush import flush_bytes
from tilewright.measure.cpu.peak import measure_peaks
from tilewright.measure.database import Database
from tilewright.scheduler.best import best
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

TRIALS = 4096
"""More than most spaces have schedules: the seconds end a search, or the space does."""
Call = Callable[[], Any]
ROUNDS, TIMED = 60, 4.0
"""Rounds of timing, and the seconds after which no other begins."""
SINGLE = 25
"""Calls of each between which others work."""


def target(threads: int) -> Target:
    """Return this machine, for kernels of so many threads."""
    return detect_target("cpu", threads=threads)


def facts(target: Target) -> dict[str, Any]:
    """Return the peak of the machine in GFLOP/s, and the settings of the rivals."""
    assert isinstance(target, CpuTarget)
    peak = measure_peaks(target).gflops["float32"]
    mkl = "its fast path opened, which it takes on Intel's alone"
    return {"peak_gflops": peak, "mkl": mkl, "numerics": "strict; fast where it allows more"}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that goes when the process does."""
    return tempfile.TemporaryDirectory()


def measure(case: Case, target: Target, seconds: float) -> dict[str, Any]:
    """Return the case's row of the results, after ``seconds`` of tuning."""
    others, inputs = partial(other_layout, case), case.inputs()
    return compare(case.workload, references(case), others, target, seconds, inputs=inputs)


def compare(
    workload: Workload,
    rivals: Mapping[str, Callable[..., Any]],
    others: Callable[[Mapping[str, Any]], Mapping[str, Call]],
    target: Target,
    seconds: float,
    timed: float = TIMED,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """A workload's row of the results: tuned for ``seconds``, then timed for ``timed`` in turns
    with ``rivals`` (``eager`` is one), functions of its tensors by name, and with ``others``, which
    are made of them."""
    threads = int(target.to_json()["threads"])
    torch.set_num_threads(threads)
    workload = _of_kernels(workload)
    ours, row = _tuned(workload, target, seconds, Numerics.STRICT)
    fast = {}
    if _is_allowed_more(workload, target):
        fast[FAST], row["fast"] = _tuned(workload, target, seconds, Numerics.FAST)
    drawn = inputs or workload.make_inputs(seed=1)
    # Torch's memory begins at a line of the caches, NumPy's may not.
    tensors = {name: as_tensor(array).clone() for name, array in drawn.items()}
    arguments = list(tensors.values())
    untuned = best(workload, target, None)
    result, other = ours(*arguments), untuned(*arguments)
    reference = rivals["eager"]
    row["largest_error"] = _largest_error(result, reference, tensors)
    calls: dict[str, Any] = {
        OURS: partial(ours, *arguments, out=result),
        UNTUNED: partial(untuned, *arguments, out=other),
        **{name: partial(own, *arguments, out=own(*arguments)) for name, own in fast.items()},
        **{name: partial(rival, **tensors) for name, rival in rivals.items()},
        **_copies(workload.least_bytes, threads),
        **({OF_ARRAYS: _on_arrays(ours, arguments, result)} if threads == 1 else {}),
        **others(tensors),
    }
    with threadpoolctl.threadpool_limits(threads), torch.no_grad():
        libraries, unavailable = usable({"compiled": lambda: compiled(reference, tensors)})
        times = interleave(calls | libraries, threads, ROUNDS, timed)
    row |= {"unavailable": unavailable} if unavailable else {}
    row |= spread(times)
    if flushed := flush_bytes(workload):
        both = {name: calls[name] for name in (OURS, UNTUNED, COPY)}
        row["after_other_work_s"] = after_other_work(both, flushed)
    moved = workload.least_bytes
    return row | {"gb_per_s": {name: moved / t / 1e9 for name, t in row["median_s"].items()}}


def _of_kernels(workload: Workload) -> Workload:
    """Return the same, of arrays as its kernels have them: matrices of a product, even if a program
    that it was written as has more axes and other names for them."""
    return replace(workload, asked=None) if workload.matmul else workload


def _is_allowed_more(workload: Workload, target: Target) -> bool:
    """Tell whether ``numerics="fast"`` allows templates that ``strict`` does not."""
    templates = space_for(workload, target, Numerics.FAST).templates.values()
    return any(t.numerics_of(workload) is Numerics.FAST for t in templates)


def _tuned(
    workload: Workload, target: Target, seconds: float, numerics: Numerics
) -> tuple[Any, dict[str, Any]]:
    """Return the best kernel after so many seconds, and what is recorded of it: ``kernel_s`` are
    the seconds that it takes where no Python calls it, if it was found out."""
    path = Path(_folder().name) / "tuning.db"
    with Database(path) as database:
        tuned = tune(workload, target, database, TRIALS, seconds, numerics=numerics)
    ours = best(workload, target, path, numerics=numerics)
    return ours, {
        "schedule": ours.schedule.to_json(),
        "kernel_s": tuned.best.score if tuned.best else None,
        "trials": tuned.trials,
        "tuning_seconds": tuned.seconds,
        "bytes": workload.least_bytes,
        "flops": workload.flops,
    }


def _copies(size: int, threads: int) -> dict[str, Call]:
    """Return the copies that read half of ``size`` bytes and write as many: torch's, and on one
    thread NumPy's, which knows no other."""
    source = torch.ones(size // 2, dtype=torch.uint8)
    to = torch.empty_like(source)
    alone = {COPY_OF_ARRAYS: partial(np.copyto, to.numpy(), source.numpy())}
    return {COPY: partial(to.copy_, source), **(alone if threads == 1 else {})}


def after_other_work(calls: Mapping[str, Call], flush_bytes: int) -> dict[str, float]:
    """Median seconds of a call, by name, where others write so many bytes before each one, as they
    do where the tuner times (``measure.cpu.cache_flush``): what lay in a last cache is gone."""
    others = np.zeros(flush_bytes, np.uint8)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(SINGLE):
        for name in random.sample(list(calls), len(calls)):
            np.add(others, 1, out=others)
            start = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _on_arrays(ours: Call, arguments: Sequence[torch.Tensor], result: Any) -> Call:
    """Return our kernel called on the same memory as arrays of NumPy."""
    several = isinstance(result, tuple)
    out = tuple(map(as_array, result)) if several else as_array(result)
    return partial(ours, *map(as_array, arguments), out=out)


def _largest_error(result: Any, reference: Any, tensors: dict[str, torch.Tensor]) -> float:
    """Return how far our result is from torch's in float64, relative to its largest element."""
    wide = {n: t.double() if t.is_floating_point() else t for n, t in tensors.items()}
    exact = reference(**wide).numpy()
    error = np.abs(result.double().numpy() - exact).max()
    return float(error / np.abs(exact).max())

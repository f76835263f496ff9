"""Tunes a case and compares the best schedule with the libraries. Needs a GPU."""

from __future__ import annotations

import statistics
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.gpu_matmul.cases import Case
from experiments.gpu_matmul.summary import READING, RIVALS
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target


@dataclass
class Bench:
    """Makes, within its block, a function that tunes a case for ``seconds`` and ``trials`` at most
    on the first GPU of this process, logs to the ``database``, and gives the case's row of the
    results: against those of ``rivals`` that apply to it."""

    seconds: float
    trials: int
    database: Path
    rivals: tuple[str, ...] = RIVALS

    def __enter__(self) -> Bench:
        self._target = detect_target("cuda")
        with ExitStack() as stack:
            self._known = stack.enter_context(Database(self.database))
            self._executor = stack.enter_context(closing(LocalExecutor(self._target)))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def __call__(self, case: Case) -> dict[str, Any]:
        target, known, executor = self._target, self._known, self._executor
        row: dict[str, Any] = {"regimes": case.regimes, "flops": case.workload.flops}
        tuned = tune(case.workload, target, known, self.trials, self.seconds, executor=executor)
        row |= {"trials": tuned.trials, "tuning_seconds": tuned.seconds}
        row |= {"failures": dict(tuned.failures), "median_s": {}}
        if tuned.best is not None:
            row["schedule"] = tuned.best.schedule.to_json()
            space = space_for(case.workload, target)
            ours = CudaFunction(space, tuned.best.schedule, "tuned")
            row |= compare(case, ours, self.rivals, target)
        return row


def compare(case: Case, ours: Any, rivals: tuple[str, ...], target: Target) -> dict[str, Any]:
    """Return our function's largest error, and its time and that of ``rivals``, taken in turns;
    with few rows also that of reading the weight."""
    import torch

    from experiments.gpu_matmul.contenders import (
        compiled,
        cublas,
        largest_error,
        tensors,
        triton_call,
    )
    from experiments.gpu_matmul.reading import fastest
    from experiments.gpu_matmul.timing import interleave
    from experiments.rivals import usable

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b, c = tensors(case)
    calls = {"tilewright": lambda: ours(a, b, out=c)}
    calls["tilewright"]()
    row: dict[str, Any] = {"max_abs_error": {"tilewright": largest_error(a, b, c)}}
    makers = {"cublas": cublas}
    makers |= {"compiled": compiled} if case.has_few_rows else {"triton": triton_call}
    libraries, unavailable = usable(
        {
            name: partial(make, a, b, torch.empty_like(c))
            for name, make in makers.items()
            if name in rivals
        }
    )
    calls |= libraries
    row |= {"unavailable": unavailable} if unavailable else {}
    if case.has_few_rows:
        calls[READING] = fastest(b, target)
    times = interleave(calls)
    row["median_s"] = {name: statistics.median(t) for name, t in times.items()}
    row["least_s"] = {name: min(t) for name, t in times.items()}
    row["tflops"] = {n: case.workload.flops / t / 1e12 for n, t in row["median_s"].items()}
    return row

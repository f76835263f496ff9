"""Time each problem against eager and Inductor, with new inputs for every call."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from math import exp, log
from statistics import fmean, quantiles
from typing import Any

import torch

from experiments.kernelbench.problems import Problem

WAYS: dict[str, dict[str, Any] | None] = {
    "eager": None,
    "inductor": {"backend": "inductor"},
    "tilewright": {"backend": "tilewright"},
}
RESAMPLED = 2000
TOLERANCE = 1e-4
"""The largest difference from eager that is right, as a part of the largest value, in float32."""


def timed(problem: Problem, device: str, rounds: int, options: dict[str, Any]) -> dict[str, Any]:
    """Time one problem in each way, in turns; the ratios have intervals of 95 %."""
    source = problem.load()
    torch.manual_seed(problem.number)
    module = source.Model(*source.get_init_inputs()).to(device)
    runs: dict[str, Callable[..., Any]] = {}
    for way, arguments in WAYS.items():
        own = {"options": options} if way == "tilewright" else {}
        runs[way] = module if arguments is None else torch.compile(module, **arguments, **own)
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    error = 0.0
    with torch.no_grad():
        for turn in range(rounds + 1):
            inputs = [_moved(each, device) for each in source.get_inputs()]
            torch.manual_seed(turn)
            wanted = module(*inputs)
            for way in random.sample(list(WAYS), len(WAYS)):
                torch.manual_seed(turn)
                seconds, found = _call(runs[way], [_copied(each) for each in inputs], device)
                if turn:
                    times[way].append(seconds)
                if way == "tilewright":
                    error = max(error, _difference(found, wanted))
    return {
        "seconds": {way: sorted(own)[len(own) // 2] for way, own in times.items()},
        "error": error,
        "wrong": error > TOLERANCE,
        "over eager": _interval(times["eager"], times["tilewright"]),
        "over inductor": _interval(times["inductor"], times["tilewright"]),
    }


def geometric(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(fmean(map(log, ratios)))


def _call(run: Callable[..., Any], inputs: Sequence[Any], device: str) -> tuple[float, Any]:
    _wait(device)
    began = time.perf_counter()
    found = run(*inputs)
    _wait(device)
    return time.perf_counter() - began, found


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _moved(given: Any, device: str) -> Any:
    return given.to(device) if isinstance(given, torch.Tensor) else given


def _copied(given: Any) -> Any:
    return given.clone() if isinstance(given, torch.Tensor) else given


def _difference(found: Any, wanted: Any) -> float:
    if not isinstance(wanted, torch.Tensor):
        return max(map(_difference, found, wanted))
    largest = float(wanted.double().abs().max()) or 1.0
    return float((found.double() - wanted.double()).abs().max()) / largest


def _interval(theirs: Sequence[float], ours: Sequence[float]) -> dict[str, float]:
    """Return the geometric mean of ratios of calls on equal inputs, and an interval by
    resampling."""
    ratios = [log(other / own) for other, own in zip(theirs, ours, strict=True)]
    drawn = random.Random(0)
    means = [fmean(drawn.choices(ratios, k=len(ratios))) for _ in range(RESAMPLED)]
    cuts = quantiles(means, n=40)
    return {"mean": exp(fmean(ratios)), "low": exp(cuts[0]), "high": exp(cuts[-1])}

"""Long reductions: how far off kernels of random schedules are, beside NumPy and torch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.spaces.long_sums import FLOOR, REDUCTIONS, TIMES, ULP, ErrorBound, drawn, terms_last
from tilewright.measure.cuda.emulator import Emulator, Interleaving
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.workloads.workload import Workload

Item = tuple[str, str, int]
"""A reduction, how its terms are drawn, and how many there are."""

TERMS = (10**3, 10**4, 10**5, 10**6, 10**7)
SCHEDULES = 20
EAGER, TIMEOUT = Interleaving("eager"), 1800.0


def items(target: str, count: int, seed: int = 0) -> Iterator[Item]:
    """Yield every reduction of every length, the longest first: they take longest."""
    for terms in reversed(TERMS):
        for name, reduction in REDUCTIONS.items():
            yield from ((name, draw.__name__, terms) for draw in reduction.draws)


def judged(target: str, item: Item) -> dict[str, Any]:
    """Return the greatest error of kernels in units of the last place of what is exact, beside
    those of NumPy and torch; wrong is what is off by more than four times torch's, or by NumPy's
    without torch."""
    name, draw, terms = item
    reduction = REDUCTIONS[name]
    work = workload(reduction.text, **reduction.shape(terms))
    (own,) = (d for d in reduction.draws if d.__name__ == draw)
    inputs = drawn(work.program, own)
    bound = ErrorBound.of(reduction, work.program, inputs)
    plain = {"numpy": bound.error / TIMES} | _torch(name, terms_last(work.program, inputs), bound)
    found = (_on_cpu if target == "cpu" else _emulated)(work, inputs)
    off = {schedule: bound.off(y) for schedule, y in found.items()}
    allowed = TIMES * max(FLOOR, plain.get("torch", plain["numpy"]))
    wrong = [
        f"{schedule}: off by {error / ULP:.3g} units of {allowed / ULP:.3g} allowed"
        for schedule, error in off.items()
        if not error <= allowed
    ]
    units = {name: round(error / ULP, 3) for name, error in plain.items()}
    return {"kernels": len(found), "wrong": wrong, "units": max(off.values()) / ULP} | units


def _torch(reduction: str, terms: Sequence[np.ndarray], bound: ErrorBound) -> dict[str, float]:
    """Return torch's error, where torch is."""
    try:
        import torch
    except ImportError:
        return {}
    (plain,) = (plain for start, plain in _plain(torch).items() if reduction.startswith(start))
    return {"torch": bound.off(plain(*map(torch.from_numpy, terms)).numpy())}


def _plain(torch: Any) -> dict[str, Callable[..., Any]]:
    """Reductions along the last axis by the first word of their names."""
    return {
        "sum": lambda x: x.sum(-1),
        "mean": lambda x: x.mean(-1),
        "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
        "dot": lambda x, z: (x * z).sum(-1),
        "variance": lambda x: torch.var(x, -1, correction=0),
        "logsumexp": lambda x: torch.logsumexp(x, -1),
    }


def _on_cpu(work: Workload, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    from tests.spaces.cpu.written import results

    with tempfile.TemporaryDirectory() as folder:
        return results(work, inputs, SCHEDULES, Path(folder))


@cache
def _emulator() -> Emulator:
    """Return one emulator for all items: those that differ in their draws have the same kernels."""
    return Emulator()


def _emulated(work: Workload, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    space = space_for(work, cuda_target("sm_90a"))
    rows = np.unique(space.sample(np.random.default_rng(0), SCHEDULES), axis=0)
    kernels = {str(s): space.lower(s) for s in map(space.schedule, rows)}
    emulator = _emulator()
    emulator.build(list(kernels.values()))
    ran = {s: emulator.run(k, inputs, EAGER, TIMEOUT) for s, k in kernels.items()}
    failed = [found.error_text for found in ran.values() if found.output is None]
    if failed:
        raise RuntimeError(failed[0])
    return {s: found.output for s, found in ran.items() if found.output is not None}

"""Products with weights of few bits on a CPU, beside torch's and our own in float32."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
import torch

from experiments.low_bit.formats import NAMES, Format
from experiments.resuming import write_run
from experiments.rivals import usable
from tilewright import Target, best, detect_target, pack, tune
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError

SHAPES = ("1x4096x4096",)
FORMATS = NAMES
SECONDS = 20.0
"""Seconds of tuning of each format."""
INT4_GROUP = 128
"""Neighbours along the depth that share a scale of torch's kernels."""
COLD_BYTES = 1 << 27
"""Bytes of the weights that calls take in turns, so that none is in a cache."""
Set = Sequence[Callable[[], Any]]
"""One call for each copy of the weights."""


def ours(
    name: str, shape: tuple[int, int, int], target: Target, seconds: float, database: str
) -> Set:
    """Return calls of our kernel with codes of a dtype, checked against float64."""
    m, n, k = shape
    form, generator = Format(name), np.random.default_rng(0)
    asked = form.product(m, n, k)
    if seconds:
        tune(asked, target, database, seconds=seconds)
    function = best(asked, target, database)
    x, d = generator.standard_normal((m, k)).astype("f4"), np.ones(m, "f4")
    if form.has_bytes:
        x, d = generator.integers(-127, 128, (m, k)).astype("i1"), generator.random(m).astype("f4")
    scales = (generator.random((k // form.group, n)) / 64).astype("f4")
    codes = generator.integers(0, 2 ** dtype(form.dtype).bits, (n, k)).astype("u1")
    packed = pack(codes, form.dtype)
    weight = (dtype(form.dtype).values[codes] - form.zero) * scales.repeat(form.group, 0).T
    known, out = d[:, np.newaxis] * (x @ weight.T), np.empty((m, n), "f4")
    rest = (x, scales, d) if form.has_bytes else (x, scales)
    np.testing.assert_allclose(function(packed, *rest), known, atol=1e-5 * abs(known).max())
    copies = [packed.copy() for _ in range(max(2, COLD_BYTES // packed.nbytes))]
    return [lambda copy=copy: function(copy, *rest, out=out) for copy in copies]


def float32(shape: tuple[int, int, int], target: Target, seconds: float, database: str) -> Set:
    """Return calls of our kernel of packed float32."""
    m, n, k = shape
    asked = f"matmul m={m} n={n} k={k} b=packed"
    if seconds:
        tune(asked, target, database, seconds=seconds)
    function, generator = best(asked, target, database), np.random.default_rng(0)
    x, out = generator.standard_normal((m, k)).astype("f4"), np.empty((m, n), "f4")
    weight = pack(generator.standard_normal((n, k)).astype("f4"))
    copies = [weight.copy() for _ in range(max(2, COLD_BYTES // weight.nbytes))]
    return [lambda copy=copy: function(x, copy, out=out) for copy in copies]


def torch_calls(shape: tuple[int, int, int]) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return makers of torch's calls of one copy of the weights, by name."""
    m, n, k = shape
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 16, (n, k), dtype=torch.int32, generator=generator)
    x = torch.randn(m, k, generator=generator)

    def int4(kind: torch.dtype) -> Callable[[], Any]:
        weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
        scales = torch.rand(k // INT4_GROUP, n, 2).to(kind)
        given = x.to(kind)
        return lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(given, weight, INT4_GROUP, scales)

    def int8() -> Callable[[], Any]:
        weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
        scales, given = torch.rand(n, dtype=torch.bfloat16), x.to(torch.bfloat16)
        return lambda: torch.ops.aten._weight_int8pack_mm(given, weight, scales)

    def float32() -> Callable[[], Any]:
        weight = torch.randn(n, k)
        return lambda: torch.mm(x, weight.t())

    return {
        "torch float32": float32,
        "torch int4, bfloat16": lambda: int4(torch.bfloat16),
        "torch int4, float32": lambda: int4(torch.float32),
        "torch int8, bfloat16": int8,
    }


def torch_sets(shape: tuple[int, int, int]) -> tuple[dict[str, Set], dict[str, str]]:
    """Return torch's calls that work here, and why others do not."""
    size = {"torch float32": 4.0, "torch int8, bfloat16": 1.0}
    makers = torch_calls(shape)
    found, missing = usable(makers)
    sets = {}
    for name, first in found.items():
        copies = max(2, int(COLD_BYTES / (size.get(name, 0.5) * shape[1] * shape[2])))
        sets[name] = [first, *(makers[name]() for _ in range(copies - 1))]
    return sets, missing


def timed(sets: dict[str, Set], rounds: int) -> dict[str, list[float]]:
    """Return the CPU times of calls in turns, each with the next of its copies."""
    times: dict[str, list[float]] = {name: [] for name in sets}
    following = {name: cycle(calls) for name, calls in sets.items()}
    for _ in range(rounds):
        for name in sets:
            call = next(following[name])
            began = time.thread_time()
            call()
            times[name].append(time.thread_time() - began)
    return times


def main(asked: argparse.Namespace) -> None:
    """Compare on one shape, print a line for each kernel, and write the results."""
    if len(asked.shape) > 1 or set(asked.dtypes) - set(NAMES):
        raise InputError(f"{asked.shape} of {asked.dtypes}; allowed: one shape of {NAMES}")
    torch.set_num_threads(1)
    m, n, k = map(int, asked.shape[0].split("x"))
    target, shape = detect_target("cpu", 1), (m, n, k)
    sets, missing = torch_sets(shape)
    sets["float32"] = float32(shape, target, asked.seconds, asked.db)
    for name in asked.dtypes:
        sets[name] = ours(name, shape, target, asked.seconds, asked.db)
    show(asked, target, sets, missing)


def show(
    asked: argparse.Namespace, target: Target, sets: dict[str, Set], missing: dict[str, str]
) -> None:
    """Time calls in turns, print a line for each, and write the results."""
    times = timed(sets, asked.rounds)
    for name, found in times.items():
        least, half = min(found) * 1e6, median(found) * 1e6
        print(f"{name:22} {half:8.0f} us, least {least:8.0f}", flush=True)
    for name, why in missing.items():
        print(f"{name:22} not here: {why}")
    results = {
        "torch": torch.__version__,
        "shape": asked.shape[0],
        "seconds": asked.seconds,
        "missing": missing,
        "times": times,
    }
    write_run(asked.out, target.summary, results)

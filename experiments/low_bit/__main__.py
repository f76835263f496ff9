"""Products with weights of 1 to 8 bits beside torch's and our own in float32; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from datetime import date
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from experiments.rivals import usable
from tilewright import Target, best, detect_target, pack, tune, workload
from tilewright.spaces.dtypes import dtype

OUT = Path(__file__).parent / "results"
GROUP = 128
COLD_BYTES = 1 << 27
"""Bytes of the weights that calls take in turns, so that none is in a cache."""
DTYPES = ("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint8", "float4_e2m1")
Set = Sequence[Callable[[], Any]]
"""One call for each copy of the weights."""


def text_of(name: str, m: int, n: int, k: int) -> Any:
    """Return the workload of a product with codes, whose groups have scales and a zero point."""
    half = float(2 ** (dtype(name).bits - 1)) if name.startswith("uint") else 0.0
    code = f"(q[n, k] - {half:.0f})" if half else "q[n, k]"
    text = f"q: {name}[n, k](packed); y[m, n] = sum[k](a[m, k] * {code} * s[k // {GROUP}, n])"
    return workload(text, m=m, n=n, k=k)


def ours(
    name: str, shape: tuple[int, int, int], target: Target, seconds: float, database: str
) -> Set:
    """Return calls of our kernel with codes of a dtype, checked against float64."""
    m, n, k = shape
    asked, generator = text_of(name, m, n, k), np.random.default_rng(0)
    if seconds:
        tune(asked, target, database, seconds=seconds)
    function = best(asked, target, database)
    bits = dtype(name).bits
    x = generator.standard_normal((m, k)).astype("f4")
    scales = (generator.random((k // GROUP, n)) / 64).astype("f4")
    codes = generator.integers(0, 2**bits, (n, k)).astype("u1")
    packed = pack(codes, name)
    half = 2 ** (bits - 1) if name.startswith("uint") else 0
    weight = (dtype(name).values[codes] - half) * scales.repeat(GROUP, 0).T
    known, out = x @ weight.T, np.empty((m, n), "f4")
    np.testing.assert_allclose(function(packed, x, scales), known, atol=1e-5 * abs(known).max())
    copies = [packed.copy() for _ in range(max(2, COLD_BYTES // packed.nbytes))]
    return [lambda copy=copy: function(copy, x, scales, out=out) for copy in copies]


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
        scales = torch.rand(k // GROUP, n, 2).to(kind)
        given = x.to(kind)
        return lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(given, weight, GROUP, scales)

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


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each kernel, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="1x4096x4096", help="rows x columns x depth")
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES))
    parser.add_argument("--seconds", type=float, default=20, help="of tuning each; 0 for none")
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--db", default="low_bit.db")
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    torch.set_num_threads(1)
    m, n, k = map(int, asked.shape.split("x"))
    target, shape = detect_target("cpu", 1), (m, n, k)
    sets, missing = torch_sets(shape)
    sets["float32"] = float32(shape, target, asked.seconds, asked.db)
    for name in asked.dtypes:
        sets[name] = ours(name, shape, target, asked.seconds, asked.db)
    times = timed(sets, asked.rounds)
    for name, found in times.items():
        least, half = min(found) * 1e6, median(found) * 1e6
        print(f"{name:22} {half:8.0f} us, least {least:8.0f}", flush=True)
    for name, why in missing.items():
        print(f"{name:22} not here: {why}")
    head = {
        "date": date.today().isoformat(),
        "machine": target.summary,
        "torch": torch.__version__,
        "load": os.getloadavg()[0],
        "shape": asked.shape,
        "seconds": asked.seconds,
        "missing": missing,
    }
    asked.out.parent.mkdir(exist_ok=True, parents=True)
    asked.out.write_text(json.dumps(head | {"times": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()

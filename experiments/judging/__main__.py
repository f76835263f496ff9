"""Bounds of programs by a GPU's kernels in float64, held to the host's, and how long both take.

    python -m experiments.judging [--minutes 3] [--only WORD ...] [--out FILE]

Each problem is drawn as for a search, and judged by the GPU at as many rows as in a search and at
all of them; the host judges some of the rows, as many as it would in a search, and all their
bounds are compared. Writes ``results.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.measure.cuda.buffers import Buffers
from tilewright.measure.cuda.device import Device
from tilewright.measure.cuda.problems import POINTS
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.cuda.trusted.evaluating import evaluate
from tilewright.measure.drawing.interfaces import Bounds
from tilewright.measure.drawing.programs import SEARCH_POINTS, ProgramDraw, ProgramInputs
from tilewright.measure.drawing.sampling import points, sample
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

HERE = Path(__file__).parent
BLOCKS = 4
SEED = 7
CONVOLUTION = "conv2d n=32 c={0} h={1} w={1} o={2} r={3} s={3} stride={4} padding={5} layout={6}"
CASES = (
    "softmax r=8192 c=8192 dtype=bfloat16",
    "layernorm r=512 c=131072 dtype=bfloat16",
    "cross_entropy r=4096 c=32000 dtype=bfloat16",
    "rope b=8 t=4096 h=32 d=128 dtype=bfloat16",
    '"y[j, i] = x[i, j]" i=8191 j=8209 dtype=float32',
    "max_pool2d n=32 c=64 h=112 w=112 r=3 stride=2 padding=1 dtype=float16",
    CONVOLUTION.format(64, 56, 64, 3, 1, 1, "NHWC") + " dtype=float16",
    CONVOLUTION.format(3, 224, 64, 7, 2, 3, "NHWC") + " dtype=float16",
    CONVOLUTION.format(512, 7, 512, 3, 1, 1, "NCHW") + " dtype=float32",
    "attention b=1 h=12 i=512 j=512 d=64 dtype=bfloat16",
    "attention b=1 h=16 i=8192 j=8192 d=128 dtype=bfloat16 mask=causal",
    "attention b=1 h=16 kv=4 i=8192 j=8192 d=128 dtype=bfloat16",
    "attention b=4 h=32 kv=8 i=1 j=8192 d=128 dtype=bfloat16",
)


def compared(found: dict[str, np.ndarray], right: dict[str, Bounds]) -> dict[str, float]:
    """Return how many of the bounds that the host knows are the same, and the largest difference of
    the others, as a part of the width of what is allowed."""
    same, largest, known = [], 0.0, 0
    for name, bounds in right.items():
        wanted = np.stack(bounds)
        at = ~np.isinf(wanted)
        known += int(at.sum())
        equal = np.isclose(found[name][at], wanted[at], 3e-7, 1e-37, equal_nan=True)
        width = np.broadcast_to(wanted[1] - wanted[0], wanted.shape)[at]
        off = np.abs(found[name][at].astype(float) - wanted[at])[~equal] / width[~equal]
        same.append(np.mean(equal) if equal.size else 1.0)
        largest = max(largest, float(off.max(initial=0.0)))
    return {"bounds": known, "same": float(min(same)), "largest_difference": largest}


def judged(device: Device, work: Workload) -> dict[str, Any]:
    """Return the seconds of each, and whether they agree."""
    fresh = ProgramInputs(work, SEED, most=POINTS)
    began = time.perf_counter()
    draw = fresh.draw(SEED)
    drawn = time.perf_counter()
    result: dict[str, Any] = {"workload": str(work), "points": points(work.program)}
    result["drawing"] = drawn - began
    with Buffers(device, BLOCKS * device.multiprocessors) as buffers:
        buffers.add(*work.inputs, *map(oracle.allowed_operand, work.outputs))
        for operand in work.inputs:
            buffers.write(operand, draw.inputs[operand.name])
        for name, problem in (("search", draw), ("all_rows", replace(draw, rows=None))):
            _seconds(buffers, problem)  # compiles
            result[name] = _seconds(buffers, problem)
        found = {o.name: buffers.read(oracle.allowed_operand(o)) for o in work.outputs}
    few = replace(draw, rows=sample(work.program, SEARCH_POINTS, np.random.default_rng(SEED)))
    began = time.perf_counter()
    right = few.allowed()
    result["host"] = time.perf_counter() - began
    which = few.rows.which if few.rows is not None else {}
    share = prod(len(rows) / work.program.extent[axis] for axis, rows in which.items())
    return {**result, "host_share_of_rows": share, **compared(found, right)}


def _seconds(buffers: Buffers, problem: ProgramDraw) -> float:
    began = time.perf_counter()
    evaluate(buffers, problem, lambda: None)
    return time.perf_counter() - began


def measured(device: Device, cases: Sequence[str], minutes: float) -> list[dict[str, Any]]:
    """Return the results of as many cases as there is time to begin."""
    end, found = time.monotonic() + 60 * minutes, []
    for text in cases:
        if time.monotonic() > end:
            break
        work = workload(text)
        found.append(judged(device, work))
        print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.judging")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    from tilewright.measure.cuda.driver import open_device

    device = open_device(0)
    cases = [text for text in CASES if any(word in text for word in options.only)]
    result = {
        "date": date.today().isoformat(),
        "device": device.name,
        "python": platform.python_version(),
        "found": measured(device, cases, options.minutes),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Time the same product in NumPy's BLAS: the baseline of a tuning run.

It is measured in a process of its own, since a BLAS reads the number of threads, and chooses its
kernels, only when it is loaded. ``OPENBLAS_CORETYPE`` is cleared, so that it is at its best.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np

from tilewright.measure.cpu.keeper import supervised
from tilewright.spaces.operators import workload_from_json
from tilewright.spaces.workloads.workload import Workload

SECONDS = 0.3  # least time spent measuring
SAMPLE_SECONDS = 1e-4  # least time between two looks at a clock, which may stand still for a while
TIMEOUT = 120.0
START_SECONDS = 0.7  # start of Python and NumPy
ELEMENT_SECONDS = 10e-9  # time to draw one element, or to touch it first
USUAL_GFLOPS = 30.0  # rate of one thread where the peak is not known
DTYPES = ("float32", "float64")
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


def serves(workload: Workload) -> bool:
    """Tell whether NumPy has a fast product for ``workload``."""
    return workload.matmul is not None and set(workload.arithmetic) <= set(DTYPES)


def expected_seconds(workload: Workload, peak_gflops: float | None) -> float:
    """Estimate the seconds that :func:`numpy_seconds` takes: to start, to draw inputs, and to
    multiply twice at ``peak_gflops`` GFLOP/s, the machine's peak if that is known.
    """
    elements = sum(operand.size for operand in workload.operands)
    product = workload.flops / (1e9 * (peak_gflops or USUAL_GFLOPS))
    return START_SECONDS + SECONDS + ELEMENT_SECONDS * elements + 2 * product


def numpy_seconds(workload: Workload, threads: int, limit: float = TIMEOUT) -> float | None:
    """Latency in seconds of NumPy's matrix product on the workload's inputs, without epilogue.

    The least of many samples: CPU time of one thread, wall time of several. None where NumPy has
    no fast product, for other operators or element types than float32 and float64, and where
    measuring takes longer than ``limit`` seconds.
    """
    if not serves(workload):
        return None
    try:
        done = subprocess.run(
            supervised([sys.executable, "-P", "-m", "tilewright.measure.baseline", str(threads)]),
            input=json.dumps(workload.to_json()),
            env=environment(threads),
            capture_output=True,
            text=True,
            timeout=min(limit, TIMEOUT),
            check=True,
        )
        return float(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):  # a baseline is no necessity
        return None


def environment(threads: int) -> dict[str, str]:
    """Return this process's environment, for a BLAS at its best on so many threads."""
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    root = str(Path(__file__).parents[1])
    path = {"PYTHONPATH": os.pathsep.join([root, *sys.path[1:]])}
    return kept | dict.fromkeys(THREADS, str(threads)) | path


def matrices(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Make the two operands that NumPy multiplies; a matrix that several heads share is
    broadcast.
    """
    inputs = workload.make_inputs(seed=0)
    first, second = (inputs[operand.name] for operand in workload.inputs[:2])
    if second.ndim < first.ndim:
        second = np.expand_dims(second, -3)
    return first, second


def least_seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the least latency of ``call`` in seconds of ``clock``, over samples of as many calls
    as take :data:`SAMPLE_SECONDS`; it is called for :data:`SECONDS` of wall time at least."""
    least, calls, end = inf, 1, time.perf_counter() + SECONDS
    while time.perf_counter() < end or least == inf:
        start = clock()
        for _ in range(calls):
            call()
        took = clock() - start
        if took < SAMPLE_SECONDS:
            calls *= 2
        else:
            least = min(least, took / calls)
    return least


def _main(threads: int) -> None:
    first, second = matrices(workload_from_json(json.load(sys.stdin)))
    out = np.matmul(first, second)
    clock = time.thread_time if threads == 1 else time.perf_counter
    print(least_seconds(lambda: np.matmul(first, second, out=out), clock))


if __name__ == "__main__":
    _main(int(sys.argv[1]))

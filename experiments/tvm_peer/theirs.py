"""Operators as tensor expressions of TVM, tuned by MetaSchedule."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

BUILD_SECONDS = 120.0
"""A builder's first build includes its start, which takes 10 to 50 seconds: TVM's 30 may end it."""
ROUND = 16
"""Trials after which TVM's cost model learns and its search goes on; by itself it would be 64."""
Tuned = tuple[Callable[..., object], float]


def matmul(size: int) -> Any:
    """Row-major squares."""
    from tvm import te

    a, b = (te.placeholder((size, size), "float32", name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    return te.create_prim_func([a, b, c])


def conv2d(words: Mapping[str, Any]) -> Any:
    """Channels last; the filter (r, s, c, o), whose outputs are side by side."""
    from tvm import te, tirx

    n, h, w, c, o, r, s = (int(words[name]) for name in "nhwcors")
    step, pad = int(words["stride"]), int(words["padding"])
    p, q = (h + 2 * pad - r) // step + 1, (w + 2 * pad - s) // step + 1
    image = te.placeholder((n, h, w, c), "float32", "image")
    filters = te.placeholder((r, s, c, o), "float32", "filter")

    def bordered(b: Any, i: Any, j: Any, k: Any) -> Any:
        inside = tirx.all(i >= pad, i < h + pad, j >= pad, j < w + pad)
        return tirx.if_then_else(inside, image[b, i - pad, j - pad, k], tirx.const(0, "float32"))

    whole = image
    if pad:
        whole = te.compute((n, h + 2 * pad, w + 2 * pad, c), bordered, "bordered")
    x, y, z = (te.reduce_axis((0, extent), name) for extent, name in ((r, "x"), (s, "y"), (c, "z")))

    def summed(b: Any, i: Any, j: Any, k: Any) -> Any:
        term = whole[b, i * step + x, j * step + y, z] * filters[x, y, z, k]
        return te.sum(term, axis=[x, y, z])

    return te.create_prim_func([image, filters, te.compute((n, p, q, o), summed, "out")])


def softmax(words: Mapping[str, Any]) -> Any:
    """Return the softmax of rows, in the four stages of TVM's own operator."""
    from tvm import te

    r, c = int(words["r"]), int(words["c"])
    x = te.placeholder((r, c), "float32", "x")
    k, n = te.reduce_axis((0, c), "k"), te.reduce_axis((0, c), "n")
    most = te.compute((r,), lambda i: te.max(x[i, k], axis=k), "most")
    powers = te.compute((r, c), lambda i, j: te.exp(x[i, j] - most[i]), "powers")
    total = te.compute((r,), lambda i: te.sum(powers[i, n], axis=n), "total")
    result = te.compute((r, c), lambda i, j: powers[i, j] / total[i], "result")
    return te.create_prim_func([x, result])


def tuned(function: Any, trials: int, cpu: str, seed: int) -> Tuned:
    """Return MetaSchedule's winner of one thread of the processor that LLVM calls ``cpu``, or of
    this one, called with tensors of TVM, and the seconds of tuning. Its builders may use two
    cores."""
    import tvm
    from tvm.s_tir import meta_schedule

    cpu = cpu or tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        builder = meta_schedule.builder.LocalBuilder(max_workers=2, timeout_sec=BUILD_SECONDS)
        database = meta_schedule.tir_integration.tune_tir(
            function,
            target,
            folder,
            max_trials_global=trials,
            num_trials_per_iter=min(trials, ROUND),
            builder=builder,
            num_tuning_cores=2,
            seed=seed,
        )
        seconds = time.perf_counter() - start
        schedule = meta_schedule.tir_integration.compile_tir(database, function, target)
        if schedule is None:
            raise SystemExit("tvm_peer: MetaSchedule found no kernel that runs")
        return tvm.compile(schedule.mod, target=target)["main"], seconds


def bound(
    entry: Callable[..., object], inputs: list[np.ndarray], expected: np.ndarray, most: float
) -> Callable[[], object]:
    """Return a call without arguments; the process ends if a result is further off than
    ``most``."""
    import tvm

    arrays = [tvm.runtime.tensor(np.ascontiguousarray(x)) for x in inputs]
    out = tvm.runtime.tensor(np.zeros(expected.shape, np.float32))
    entry(*arrays, out)
    error = np.abs(out.numpy() - expected).max()
    if not error < most:
        raise SystemExit(f"tvm_peer: MetaSchedule's kernel is off by {error}")
    return lambda: entry(*arrays, out)

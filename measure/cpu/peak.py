"""The machine's peak rates: multiply-adds, and bytes read from each level of memory.

They are measured with small C kernels on the target's threads, and kept in the user's cache under
the target's fingerprint.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np

from tilewright.measure.cpu.binaries import kernel_library
from tilewright.measure.cpu.cores import one_cpu_per_core, pinned_to
from tilewright.measure.cpu.pool import load_pool
from tilewright.measure.host.cache import CachedFile
from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.cpu.isa import BFLOAT16_DOT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Source

VERSION = 3  # rises when the same machine would get other numbers
DTYPES = ("float32", "float64", "bfloat16")
FMA_ROUNDS = 40_000
READ_STREAMS = (1, 4)
LOADS = 8  # independent loads in flight on one stream
SECONDS = {"cpu": 0.25, "wall": 0.75}  # repetition time of one kernel, by the clock


@dataclass(frozen=True)
class MachinePeaks:
    """Peak rates of all threads of a target together.

    ``gflops`` is GFLOP/s of multiply-adds in registers by dtype (of bfloat16 by its dot product
    where there is one, else those of float32); ``read_gbs`` is GB/s (10^9
    bytes) of reading: ``near`` from a buffer that fits L1, ``middle`` L2, ``far`` L3, ``main``
    from memory.
    """

    gflops: dict[str, float]
    read_gbs: dict[str, float]

    @property
    def fma_gflops(self) -> float:
        """GFLOP/s of float32 multiply-adds."""
        return self.gflops["float32"]


def measure_peaks(target: CpuTarget) -> MachinePeaks:
    """Return the peaks of ``target``, which must be this machine: measured in some seconds, once.

    A busy machine shows less than it has: each number is the best of many short trials.
    """

    def measure() -> bytes:
        peaks = MachinePeaks(
            {dtype: _fma_gflops(target, dtype) for dtype in DTYPES},
            {level: _read_gbs(target, size) for level, size in _buffer_bytes(target).items()},
        )
        return json.dumps(asdict(peaks)).encode()

    return MachinePeaks(**json.loads(_file(target).content(measure)))


def readers(target: CpuTarget, size: int) -> dict[str, Callable[[], None]]:
    """Return the functions that read about ``size`` bytes of memory on the target's threads, by the
    number of streams: what a kernel bound by memory is compared with."""
    step = LOADS * target.vector_bytes * max(READ_STREAMS)
    share = max(1, size // target.threads // step) * step
    buffer = np.ones(share * target.threads, np.uint8)
    return {
        f"read.{streams}": _bound(target, _read_source(target, share, 1, streams), buffer)
        for streams in READ_STREAMS
    }


def known_peaks(target: CpuTarget) -> MachinePeaks | None:
    """Return the peaks of ``target`` if they were measured before, at no cost; else None."""
    try:
        content = _file(target).read()
    except InputError:  # no cache to be used
        return None
    return None if content is None else MachinePeaks(**json.loads(content))


def _file(target: CpuTarget) -> CachedFile:
    return CachedFile("peaks", f"{target.fingerprint}-{VERSION}.json")


def _fma_gflops(target: CpuTarget, dtype: str) -> float:
    chains = target.vector_registers - max(4, target.vector_registers // 4)
    pairs = dtype == "bfloat16" and target.bf16_dot
    c_type = "double" if dtype == "float64" else "float"
    constants = np.array([0.999, 1e-3], np.float64 if c_type == "double" else np.float32)
    flops = 2 * (1 + pairs) * target.lanes(constants.itemsize) * chains
    step = "{a} = tw_dot_pairs({a}, x, y);" if pairs else "{a} = {a} * x + y;"
    seconds = _least_seconds(target, _fma_source(target, c_type, chains, step), constants)
    return flops * FMA_ROUNDS * target.threads / seconds / 1e9


def _read_gbs(target: CpuTarget, size: int) -> float:
    """Measure GB/s for a buffer of ``size`` bytes for each thread."""
    buffer = np.ones(size * target.threads, np.uint8)
    passes = max(1, (8 << 20) // size)
    sources = [_read_source(target, size, passes, streams) for streams in READ_STREAMS]
    seconds = min(_least_seconds(target, source, buffer) for source in sources)
    return size * passes * target.threads / seconds / 1e9


def _buffer_bytes(target: CpuTarget) -> dict[str, int]:
    """Return the bytes for each thread, by level of memory; whole steps of every number of
    streams."""
    sizes = {
        "near": target.l1_bytes // 2,
        "middle": target.l2_bytes // 2,
        "far": (target.threads * target.l2_bytes + target.l3_bytes) // 2 // target.threads,
        "main": max(4 * target.l3_bytes, 64 << 20) // target.threads,
    }
    step = LOADS * target.vector_bytes * max(READ_STREAMS)
    return {level: max(1, size // step) * step for level, size in sizes.items()}


def _fma_source(target: CpuTarget, c_type: str, chains: int, step: str) -> str:
    """Return the C of :data:`FMA_ROUNDS` multiply-adds in each of ``chains`` vector registers
    ``a``."""
    names = [f"a{i}" for i in range(chains)]
    starts = ", ".join(f"{name} = x + {i}" for i, name in enumerate(names))
    return _threaded(
        target,
        f"""
  typedef {c_type} v __attribute__((vector_size({target.vector_bytes})));
  const {c_type} *constants = buffer;
  const v x = constants[0] - (v){{0}}, y = constants[1] - (v){{0}};
  v {starts};
  for (long i = 0; i < {FMA_ROUNDS}; i++) {{
    {" ".join(step.format(a=name) for name in names)}
  }}
  volatile v sink = {" + ".join(names)};
""",
    )


def _read_source(target: CpuTarget, size: int, passes: int, streams: int) -> str:
    """C that reads ``size`` bytes a thread, ``passes`` times, as ``streams`` streams at once."""
    stream_bytes = size // streams
    offsets = [
        s * stream_bytes + i * target.vector_bytes for s in range(streams) for i in range(LOADS)
    ]
    names = [f"a{i}" for i in range(len(offsets))]
    loads = [f"{a} ^= *(const v *)(p + {o});" for a, o in zip(names, offsets, strict=True)]
    return _threaded(
        target,
        f"""
  typedef long v __attribute__((vector_size({target.vector_bytes}), aligned(8), may_alias));
  v {", ".join(f"{name} = {{0}}" for name in names)};
  for (int pass = 0; pass < {passes}; pass++) {{
    const char *p = (const char *)buffer + worker * {size}L, *end = p + {stream_bytes}L;
    for (; p < end; p += {LOADS * target.vector_bytes}) {{
      {" ".join(loads)}
    }}
  }}
  volatile v sink = {" ^ ".join(names)};
""",
    )


def _threaded(target: CpuTarget, task: str) -> str:
    """Return the C of a kernel whose every thread runs ``task``, given ``buffer`` and
    ``worker``."""
    call = (
        "runtime->parallel(runtime->pool, {n}, task, buffers[0]);"
        if target.threads > 1
        else ("task(buffers[0], 0);")
    )
    return f"""
static void task(void *buffer, int worker) {{{task}  (void)sink;
}}
void peak(void *const *buffers, void *workspace, const tw_runtime *runtime) {{
  {call.format(n=target.threads)}
}}
"""


def _least_seconds(target: CpuTarget, source: str, buffer: np.ndarray) -> float:
    """Measure the least seconds of one call, over many: CPU time of one thread, wall time of
    several.
    """
    call = _bound(target, source, buffer)
    alone = target.threads == 1
    clock = time.thread_time if alone else time.perf_counter
    least, end = float("inf"), time.perf_counter() + SECONDS["cpu" if alone else "wall"]
    with nullcontext() if alone else pinned_to(one_cpu_per_core()[0]):
        while time.perf_counter() < end:
            start = clock()
            call()
            least = min(least, clock() - start)
    return least


def _bound(target: CpuTarget, source: str, buffer: np.ndarray) -> Callable[[], None]:
    """Return the function ``peak`` of ``source`` on ``buffer``, as a function without arguments."""
    dot = f"typedef float vf __attribute__((vector_size({target.vector_bytes})));\n{BFLOAT16_DOT}"
    prelude = ABI_PRELUDE + dot * target.bf16_dot
    function = kernel_library(Source("c", prelude, source), target).peak
    function.restype = None
    pointer = buffer.ctypes.data_as(ctypes.c_void_p)  # which keeps the buffer alive
    runtime = ctypes.c_void_p(load_pool(target.threads, one_cpu_per_core()[: target.threads]))
    return lambda: function(ctypes.byref(pointer), None, runtime)

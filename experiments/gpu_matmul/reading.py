"""Measure how fast a weight can be read at all: the bound of products with few rows. Needs a GPU.

The kernels load each 16 bytes once, do no more with them than keeps the compiler from leaving the
load out, and store nothing. The fastest of several ways is taken as the bound.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.launching import entry_point, load_functions, prepare
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.matmul import Operand

Queue = Callable[[], object]

VECTOR = 4  # words of 32 bits loaded at once
COMPILE_SECONDS = 60.0


def kernels(size: int) -> Iterator[Kernel]:
    """Yield the ways to read ``size`` bytes that divide it: by threads of a block, vectors in
    flight of a thread, and bytes that a miss fetches into L2."""
    for threads in (128, 256, 512, 1024):
        for vectors in (2, 4):
            for fetch in (0, 128):
                blocks, rest = divmod(size, threads * vectors * VECTOR * 4)
                if not rest:
                    yield _kernel(threads, vectors, fetch, blocks)


def _kernel(threads: int, vectors: int, fetch: int, blocks: int) -> Kernel:
    begin = f"from += ((i64)blockIdx.x * {threads * vectors} + threadIdx.x) * {VECTOR};"
    load = (
        f"tw::load_stream<{VECTOR}, {fetch}>(held + {VECTOR} * i, from + {threads * VECTOR} * i);"
    )
    return reading_kernel(
        f"read_{threads}_{vectors}_{fetch}", threads, vectors, blocks, begin, [load]
    )


def reading_kernel(
    entry: str, threads: int, vectors: int, blocks: int, begin: str, load: Sequence[str]
) -> Kernel:
    """Return a kernel that reads a vector a thread so often: ``begin`` is a line of C before all,
    and ``load`` are those that load the vector ``i`` to its place in ``held``."""
    words, lines = vectors * VECTOR, "\n".join(f"    {line}" for line in load)
    source = f"""
extern "C" __global__ void __launch_bounds__({threads}) {entry}(const u32 *from, u32 *out) {{
  {begin}
  u32 held[{words}], all = 0;
#pragma unroll
  for (int i = 0; i < {vectors}; i++) {{
{lines}
  }}
#pragma unroll
  for (int i = 0; i < {words}; i++) all = all * 3 + held[i];
  if (all == 0x9e3779b9u) tw::store_global(out, all);
}}
"""
    read = Operand("from", "int32", (blocks * threads * words,), (0,), axes=("i",))
    out = Operand("out", "int32", (1,), (0,), axes=("i",))
    launches = (Launch((blocks, 1, 1), (threads, 1, 1)),)
    call = Call(entry, arguments([read], [out]), launches=launches)
    return Kernel(Source("cuda", "", source), call)


def fastest(weight: Any, target: Target) -> Queue:
    """Return a function that queues the reading of a torch tensor of a size that is a multiple of 4
    KiB, in the way that takes the least time."""
    import torch

    from experiments.gpu_matmul.timing import interleave

    out = torch.zeros(1, dtype=torch.int32, device=weight.device)
    addresses = {"from": weight.data_ptr(), "out": out.data_ptr()}
    size = weight.numel() * weight.element_size()
    calls = {
        k.call.entry: reading_call(k, addresses, target.name, (weight, out)) for k in kernels(size)
    }
    times = interleave(calls, rounds=10)
    return calls[min(calls, key=lambda name: statistics.median(times[name]))]


def reading_call(kernel: Kernel, addresses: dict[str, int], architecture: str, held: Any) -> Queue:
    """Return a function that queues a kernel on the buffers at ``addresses``, which ``held``
    keeps."""
    source = kernel.source.text
    done = compile_cubin(device_text(source) + source, architecture, COMPILE_SECONDS, lambda: False)
    assert done.cubin is not None, done.log
    (launch,) = prepare(kernel.call, load_functions(done.cubin, kernel.call, 0), addresses, 0)
    start, pointers = entry_point("cuLaunchKernelEx"), launch.pointers

    def call(keep: Any = (held, launch)) -> None:
        status = start(*pointers, None)
        assert status == 0, f"the launch of {kernel.call.entry} gives {status}"

    return call

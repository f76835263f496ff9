"""Hand-written C kernels, right and wrong in known ways, as candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from tilewright.measure import retrying
from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.interfaces import Runner
from tilewright.measure.records.measurement import Candidate, Job, Measurement, Result
from tilewright.spaces.cpu.abi import ABI_PRELUDE
from tilewright.spaces.cpu.target import CpuTarget, detect_cpu
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.workloads.workload import Workload

PRELUDE = ABI_PRELUDE + "#include <stdlib.h>\n#include <string.h>\n"

C_TYPES = {"float64": "double", "float32": "float", "int32": "int", "int8": "signed char"}
C_TYPES |= {"float16": "_Float16", "bfloat16": "unsigned short"}  # the latter's bits


@cache
def target(threads: int = 1) -> CpuTarget:
    return detect_cpu(threads)


@cache
def product(m: int = 48, n: int = 40, k: int = 32, **parameters: str) -> Workload:
    return workload("matmul", m=m, n=n, k=k, **parameters)


def naive(work: Workload) -> str:
    """Statements of a plain matrix product of any layout without epilogue."""
    a, b, c = work.operands
    source, sink = C_TYPES[a.dtype], C_TYPES[c.dtype]
    total = {"float32": "float", "float64": "double", "int32": "int"}[work.accumulator]
    m, n, k = (work.extents[axis] for axis in "mnk")
    return f"""
  const {source} *A = buffers[0], *B = buffers[1];
  {sink} *C = buffers[2];
  for (long m = 0; m < {m}; m++)
    for (long n = 0; n < {n}; n++) {{
      {total} sum = 0;
      for (long k = 0; k < {k}; k++)
        sum += ({total})A[m * {a.stride("m")} + k * {a.stride("k")}]
             * ({total})B[k * {b.stride("k")} + n * {b.stride("n")}];
      C[m * {c.stride("m")} + n * {c.stride("n")}] = sum;
    }}
"""


def candidate(
    name: str,
    body: str | Callable[[str], str],
    work: Workload | None = None,
    *,
    on: CpuTarget | None = None,
    prelude: str = PRELUDE,
    outside: str = "",
    workspace_bytes: int = 0,
    workspace_zeroed: int = 0,
) -> Candidate:
    """A kernel with these statements; a function gets the naive product to build on."""
    work = work or product()
    statements = body if isinstance(body, str) else body(naive(work))
    head = f"void {name}(void *const *buffers, void *workspace, const tw_runtime *runtime)"
    source = f"{outside}\n{head} {{\n{statements}\n}}\n"
    call = Call(name, arguments(work.inputs, work.outputs), workspace_bytes, workspace_zeroed)
    kernel = Kernel(Source("c", prelude, source), call)
    job = Job("test", work, on or target())
    return Candidate(job, Schedule("written", (("name", name),)), kernel)


def measured(
    candidates: Sequence[Candidate], runner: Runner | None = None, **options
) -> list[Measurement]:
    """What becomes of candidates, tried again as an executor does, in their order."""
    job = replace(candidates[0].job, **options)
    builder, runner = CBuilder(job.target), runner or CRunner(job.target)
    try:
        built = retrying.build(builder, candidates)
        ready = [b for b in built if b.binary is not None]
        found = [Result(b.candidate, b.failure()) for b in built if b.binary is None]
        for results in retrying.run(runner.run, job, ready):
            found += results
    finally:
        runner.close()
        builder.close()
    by_name = {result.candidate.schedule: result.measurement for result in found}
    return [by_name[candidate.schedule] for candidate in candidates]


def good(name: str = "good", work: Workload | None = None, **options) -> Candidate:
    return candidate(name, lambda product: product, work, **options)


def broken(name: str = "broken") -> Candidate:
    return candidate(name, "this is no C;")


def wrong(name: str = "wrong") -> Candidate:
    return candidate(name, lambda product: f"{product} C[45] += 1;")


def crashing(name: str = "crashing") -> Candidate:
    return candidate(name, "*(volatile int *)16 = 1;")


def hanging(name: str = "hanging") -> Candidate:
    return candidate(name, 'for (;;) __asm__ volatile("");')


def slow(name: str = "slow", times: int = 2000) -> Candidate:
    return candidate(
        name,
        lambda product: (
            f'for (int r = 0; r < {times}; r++) {{ {product} __asm__ volatile("" ::: "memory"); }}'
        ),
    )

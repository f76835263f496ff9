"""The workloads of the comparison."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

SQUARES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (2039, 2039, 2039)]
LAYERS = [(128, 768, 768), (128, 3072, 768), (128, 768, 3072)]
THIN = [(1, 4096, 4096), (8, 4096, 4096), (16, 4096, 4096)]
SHAPES = SQUARES + LAYERS + THIN
GELU = "gelu(x + bias[n])"


@dataclass(frozen=True)
class Case:
    """One row of the table: C[m,n] = A[m,k] B[k,n], all row-major, perhaps with bias and GELU."""

    m: int
    n: int
    k: int
    dtype: str
    fused: bool
    threads: int

    @property
    def name(self) -> str:
        tail = "+gelu" if self.fused else ""
        return f"{self.m}x{self.n}x{self.k} {self.dtype}{tail} t{self.threads}"

    @property
    def workload(self) -> Workload:
        epilogue = GELU if self.fused else ""
        return workload("matmul", m=self.m, n=self.n, k=self.k, dtype=self.dtype, epilogue=epilogue)


def all_cases() -> list[Case]:
    """float32 plain and fused at 1 and 2 threads; bfloat16 plain at 1 thread."""
    cases = [
        Case(*shape, "float32", fused, threads)
        for threads in (1, 2)
        for fused in (False, True)
        for shape in SHAPES
    ]
    return cases + [Case(*shape, "bfloat16", False, 1) for shape in SHAPES]

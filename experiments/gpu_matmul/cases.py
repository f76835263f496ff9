"""The workloads of the comparison."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

LAYERS = (
    (6144, 4096),
    (4096, 14336),
    (14336, 4096),
    (4096, 4096),
    (10240, 8192),
    (8192, 28672),
    (8192, 8192),
    (28672, 8192),
)
"""(n, k) of linear layers of language models."""
ROWS = (32, 64, 128, 2048, 4096)
FEW_ROWS = (1, 2, 4, 8)
FEW_ROWS_LAYERS = ((4096, 14336), (14336, 4096))
FEW_ROWS_TYPES = ("float16", "bfloat16")
SIDES = (2048, 2047, 2046, 2045, 2044, 2043, 2042, 2039)


@dataclass(frozen=True)
class Case:
    """``C[m,n] = A[m,k] B[k,n]``, A and C row-major; ``b`` is col where B is a layer's weight,
    kept as [n, k]. float8 gives bfloat16."""

    m: int
    n: int
    k: int
    dtype: str
    b: str

    @property
    def name(self) -> str:
        return f"{self.m}x{self.n}x{self.k} {self.dtype}"

    @property
    def has_few_rows(self) -> bool:
        """Tell whether it is little more than a product of a matrix and a vector."""
        return self.m <= max(FEW_ROWS)

    @property
    def regimes(self) -> tuple[str, ...]:
        """Groups of the summary that the case belongs to; a square may be a layer too."""
        found = []
        if (self.n, self.k) in LAYERS and self.m in ROWS and self.dtype == "bfloat16":
            found += ["layers", "layers, m <= 128" if self.m <= 128 else "layers, m >= 2048"]
        if self.has_few_rows:
            found.append("rows 1 to 8")
        if self.m == self.n == self.k:
            found.append("squares" if self.m >= 4096 else f"sides about 2048, {self.dtype}")
        return tuple(found)

    @property
    def workload(self) -> Workload:
        out = "bfloat16" if self.dtype.startswith("float8") else self.dtype
        return workload("matmul", m=self.m, n=self.n, k=self.k, dtype=self.dtype, out=out, b=self.b)


def all_cases() -> list[Case]:
    """Return the squares, the forty shapes of layers, sides that are no multiples of anything, few
    rows."""
    squares = [
        Case(side, side, side, dtype, "col")
        for side in (8192, 4096)
        for dtype in ("bfloat16", "float16", "float8_e4m3fn")
    ]
    layers = [Case(m, n, k, "bfloat16", "col") for n, k in LAYERS for m in ROWS]
    sides = [Case(s, s, s, dtype, "row") for dtype in ("float32", "float16") for s in SIDES]
    few = [
        Case(m, n, k, dtype, "col")
        for n, k in FEW_ROWS_LAYERS
        for dtype in FEW_ROWS_TYPES
        for m in FEW_ROWS
    ]
    return list(dict.fromkeys([*squares, *layers, *sides, *few]))

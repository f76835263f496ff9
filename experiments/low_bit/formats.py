"""Formats of weights of few bits, and the products with them that are measured."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright import Workload, workload
from tilewright.spaces.dtypes import dtype

MXFP4 = "mxfp4"
"""Codes of 4 bits with powers of two as scales for 32 of the depth."""
BYTES = "_int8"
"""The end of names of formats whose activations are int8, each row with a scale."""
PLAIN = ("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint8", "float4_e2m1")
BESIDE_BYTES = tuple(f"uint{bits}{BYTES}" for bits in (1, 2, 4, 8))
NAMES = (*PLAIN, *BESIDE_BYTES)
GPU_NAMES = (*NAMES, "float8_e4m3fn", MXFP4)
BIAS = 127
"""The byte of a scale of MXFP4 that stands for 1."""


@dataclass(frozen=True)
class Format:
    """The format of this name: that of a dtype with scales for 128 of the depth and, if its codes
    are whole numbers, the middle as zero point, beside int8 activations or floats; or MXFP4."""

    name: str

    @property
    def dtype(self) -> str:
        """The dtype of the codes."""
        return "float4_e2m1" if self.has_powers else self.name.removesuffix(BYTES)

    @property
    def has_bytes(self) -> bool:
        """Tell whether activations are int8, whose rows have scales ``d``."""
        return self.name.endswith(BYTES)

    @property
    def has_powers(self) -> bool:
        """Tell whether scales are powers of two in a byte."""
        return self.name == MXFP4

    @property
    def group(self) -> int:
        """Neighbours along the depth that share a scale."""
        return 32 if self.has_powers else 128

    @property
    def zero(self) -> int:
        """The zero point."""
        return 2 ** (dtype(self.dtype).bits - 1) if self.dtype.startswith("uint") else 0

    def product(
        self, m: int, n: int, k: int, activations: str = "float32", experts: int = 0
    ) -> Workload:
        """Return the product of ``m`` rows of ``activations``, with scales and outputs of that
        dtype, and a weight of ``n`` columns and a depth of ``k``; with ``experts``, each row has
        the weight of its expert, by which rows are sorted."""
        table = f"e: int32[m](sorted < {experts}); " if experts else ""
        all_of, own = (f"{experts}, ", "e[m], ") if experts else ("", "")
        code = f"(q[{own}n, k] - {self.zero})" if self.zero else f"q[{own}n, k]"
        place = f"[{own}k // {self.group}, n]"
        kind = "uint8" if self.has_powers else activations
        scale = f"exp2(s{place} - {BIAS})" if self.has_powers else f"s{place}"
        given, rows = ("int8", " * d[m]") if self.has_bytes else (activations, "")
        text = (
            f"{table}q: {self.dtype}[{all_of}n, k](packed); a: {given}[m, k]; "
            f"s: {kind}[{all_of}k // {self.group}, n]; y: {activations}[m, n]; "
            f"y[m, n] = sum[k](a[m, k] * {code} * {scale}){rows}"
        )
        return workload(text, m=m, n=n, k=k)

"""A made-up CPU, for tests that need the data of a machine and no machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.spaces.cpu.target import CpuTarget

_MADE_UP = CpuTarget(
    model="made up",
    architecture="x86_64",
    isa="avx512",
    vector_bytes=64,
    vector_registers=32,
    fma=True,
    bf16_dot=False,
    cores=2,
    threads=1,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=32 << 20,
    compiler="gcc",
    compiler_version="0.0",
    flags=("-O2",),
)


def made_up_cpu(**changes: Any) -> CpuTarget:
    """Return two cores with AVX-512, of which kernels use one thread, but for the ``changes``."""
    return replace(_MADE_UP, **changes)

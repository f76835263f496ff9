"""Tests under ``TILEWRIGHT_ARCH``, which has kernels made for another instruction set.

Where this machine lacks its instructions, kernels are made and compiled, and a test that would run
one is skipped at that point.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from tilewright.spaces.cpu.compiler import ARCHITECTURE, find_compiler
from tilewright.spaces.cpu.isa import detect_isa

NEEDED = {"avx512": {"avx512f", "avx512bw", "avx512vl", "fma"}, "avx2": {"avx2", "fma"}}
"""What the system calls the instructions of a set."""


def lacking(isa: str, cpuinfo: str) -> set[str]:
    """The instructions of ``isa`` that a machine has not, by what its system says of it."""
    found = [line.partition(":")[2].split() for line in cpuinfo.splitlines() if "flags" in line]
    return NEEDED.get(isa, set()) - set(found[0]) if found else set()


def skip_what_cannot_run(patch: pytest.MonkeyPatch) -> None:
    """Skip tests that load or run a kernel for instructions that this machine lacks."""
    path = Path("/proc/cpuinfo")
    if not os.environ.get(ARCHITECTURE) or not path.exists():
        return
    isa = detect_isa(find_compiler().macros).name
    missing = lacking(isa, path.read_text())
    if not missing:
        return
    from tilewright.measure.cpu.runner import CRunner
    from tilewright.measure.host import loading

    def skip(*_: Any, **__: Any) -> Any:
        pytest.skip(f"made for {isa}, and not run: this machine lacks {', '.join(sorted(missing))}")

    class Library(ctypes.CDLL):
        def __init__(self, name: Any, *args: Any, **options: Any) -> None:
            if name is not None and str(name).endswith(".so"):
                skip()
            super().__init__(name, *args, **options)

    patch.setattr(ctypes, "CDLL", Library)
    patch.setattr(CRunner, "run", skip)
    patch.setattr(loading, "sealed_file", skip)


def other() -> str:
    """The architecture that tests are repeated for: AVX2 here if there is AVX-512, and the reverse;
    empty on machines of other families."""
    return {"avx512": "haswell", "avx2": "skylake-avx512"}.get(
        detect_isa(find_compiler().macros).name, ""
    )


if __name__ == "__main__":
    print(other())

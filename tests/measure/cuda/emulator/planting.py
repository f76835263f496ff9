"""Kernels with a bug planted into them, and what the emulator has to say of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from tests import kernels
from tilewright.measure.cuda.emulator import Emulator, verify
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.workloads.workload import Workload

Case = tuple[Workload, Kernel]


def planted(case: Case, pattern: str, replacement: str, mark: str = "bug") -> Case:
    """The case with a bug in its kernel, see :func:`tests.kernels.planted`; the ``mark`` is added
    to its entry, since kernels of one name cannot be compiled together."""
    work, kernel = case
    return work, kernels.planted(kernel, pattern, replacement, f"{kernel.call.entry}_{mark}")


def check_right(emulator: Emulator, case: Case) -> None:
    """It agrees with the reference, in any order."""
    result = verify(emulator, *case)
    assert result.error_kind is None, result.error_text


def check_all_right(emulator: Emulator, cases: Sequence[Case]) -> None:
    """Each of them does, compiled together."""
    emulator.build([kernel for _, kernel in cases])
    for case in cases:
        check_right(emulator, case)


def check_found(emulator: Emulator, case: Case) -> None:
    """It runs, and is found wrong."""
    result = verify(emulator, *case)
    assert result.error_kind is not None
    assert "compile" not in result.error_kind.value, result.error_text

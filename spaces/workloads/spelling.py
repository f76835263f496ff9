"""Spell a workload as people would: without the parameters that have their usual values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.errors import InputError

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload


def short_text(workload: Workload) -> str:
    """Return the shortest text that still names ``workload``: ``matmul m=64 n=64 k=64``, for
    example, without dtypes and layouts."""
    text = str(workload)
    for name, value in workload.parameters:
        shorter = text.replace(f" {name}={value}", "", 1)
        if shorter != text and _names(shorter, workload):
            text = shorter
    return text


def _names(text: str, workload: Workload) -> bool:
    """Return True if ``text`` names this workload."""
    from tilewright.spaces.operators import workload as named  # which makes workloads of all kinds

    try:
        return named(text).key == workload.key
    except InputError:
        return False

"""The rules about numbers of workers, whatever they share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.spaces.template import Rule

LEAST_MULTIPLY_ADDS = 2.0**20
"""Multiply-adds that are worth waking a thread for: about ten microseconds of work."""
LEAST_BYTES = 1 << 17
"""The least bytes of each thread, if all are to be woken."""


def enough_threads(threads: int, reads: Sequence[str]) -> Rule:
    """Return the rule that there are no more workers than threads; the workers of kinds ``reads``
    multiply."""
    return Rule(
        "threads",
        tuple(reads),
        lambda c: _workers(c, reads) <= threads,
        lambda c: (
            f"{' times '.join(str(c[name]) for name in reads)} workers are more than the "
            f"target's {threads} threads"
        ),
    )


def idle_threads(threads: int, least: int, reads: Sequence[str] = ("workers",)) -> Rule:
    """Return the rule that there are no fewer workers than ``least``, for which there is enough
    work."""
    return Rule(
        "idle_threads",
        tuple(reads),
        lambda c: _workers(c, reads) >= least,
        lambda c: (
            f"{_workers(c, reads)} of {threads} threads would work; "
            f"there is work enough for {least}"
        ),
    )


def idle_batch_workers(batches: int) -> Rule:
    """Return the rule that no more workers share a batch than it has products."""
    return Rule(
        "idle_batch_workers",
        ("batch_workers",),
        lambda c: c["batch_workers"] <= batches,
        lambda c: f"{c['batch_workers']} workers share {batches} products",
    )


def _workers(c: Any, reads: Sequence[str]) -> Any:
    return prod(c[name] for name in reads)

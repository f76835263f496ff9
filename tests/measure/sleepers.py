"""Processes that sleep, to see what outlives what."""

from __future__ import annotations

import time

import psutil


def sleepers(seconds: str) -> list[psutil.Process]:
    """The processes that sleep for so long, a number that each test has its own of."""
    running = psutil.process_iter(["cmdline"])
    return [p for p in running if (p.info["cmdline"] or []) == ["sleep", seconds]]


def gone(seconds: str) -> bool:
    deadline = time.monotonic() + 100
    while sleepers(seconds) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not sleepers(seconds)


def appear(seconds: str, count: int) -> bool:
    """Whether there are so many in the end, or more."""
    deadline = time.monotonic() + 100
    while len(sleepers(seconds)) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(sleepers(seconds)) >= count

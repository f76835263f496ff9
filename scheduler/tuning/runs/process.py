"""Tells whether the process of a run still lives, on the machine that it ran on."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START = 18  # place of its time of start among the fields that follow the state of a process
_DEAD = "ZX"  # states of processes that have ended, and nobody has asked how
_LONGEST = 10  # digits of a process's number


def this_process() -> str:
    """Return this process as runs note it: machine, number, and time of start; empty where the
    system does not say these."""
    machine, start = _machine(), _start(os.getpid())
    return f"{machine}:{os.getpid()}:{start}" if machine and start else ""


def is_gone(process: object) -> bool:
    """Return True if a process, as a run noted it, has certainly ended.

    Processes of other machines cannot be asked, so the answer for them is False.
    """
    if not isinstance(process, str) or process.count(":") != 2:
        return False
    machine, number, start = process.split(":")
    is_number = number.isdecimal() and len(number) <= _LONGEST
    if not machine or machine != _machine() or not is_number:
        return False
    return _start(int(number)) != start


@cache
def _machine() -> str:
    """This machine since it was started, as far as its processes see each other: a container has
    numbers of its own."""
    try:
        seen = _BOOT.read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return hashlib.sha256(seen.encode()).hexdigest()[:16]


def _start(number: int) -> str:
    """Say when a process that lives started, by the clock of its machine; empty if there is
    none."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in _DEAD else fields[_START]

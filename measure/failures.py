"""Tell failures of a schedule, which say something of it, from those of the machine.

A compiler's words are its diagnostic of the source only if one of them points into the source. All
else, such as a full disk or a killed compiler, is the machine's.
"""

from __future__ import annotations

import re

from tilewright.measure.records.measurement import ErrorKind, Status

MACHINE = frozenset(
    {
        ErrorKind.COMPILE_TIMEOUT,
        ErrorKind.COMPILER_LOST,
        ErrorKind.WORKER_LOST,
        ErrorKind.DEVICE,
    }
)
"""Failures of machines, whatever the schedule was. A timeout or the end of memory may be either's:
it is the schedule's once it happens again to the candidate alone (``measure.retrying``)."""

_DIAGNOSTIC = re.compile(
    r"\.(c|s|cpp):(\d+:)* *((fatal|internal compiler) )?error:"  # gcc, clang, as
    r"|\.cu\(\d+\): .*error|ptxas (error|fatal)"  # nvrtc
    r"|undefined reference|undefined symbol|has no entry|intrinsic",
    re.IGNORECASE,
)
_RESOURCES = re.compile(
    r"No space left|Disk quota|Cannot allocate memory|out of memory|memory exhausted"
    r"|Input/output error|Read-only file system|Too many open files|temporarily unavailable"
    r"|error writing|write error|Killed|Bus error",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(r"SIG(KILL|TERM|HUP|INT)\b")  # what a kernel does not send itself


def diagnoses(line: str) -> bool:
    """Tell whether a compiler's line names a fault of the source."""
    return bool(_DIAGNOSTIC.search(line)) and not _RESOURCES.search(line)


def compile_failure(text: str, timed_out: bool) -> ErrorKind:
    """Say why a compiler that said ``text`` gave no binary."""
    if timed_out:
        return ErrorKind.COMPILE_TIMEOUT
    found = any(map(diagnoses, text.splitlines()))
    return ErrorKind.COMPILE if found else ErrorKind.COMPILER_LOST


def status_of_old(kind: ErrorKind, text: str) -> Status:
    """Choose the status of a failure that was recorded before the two kinds were distinguished.

    A failure that may have been the machine's is ``LOST``, so that the schedule is tried again.
    """
    match kind:
        case ErrorKind.COMPILE:
            lost = compile_failure(text, timed_out=False) in MACHINE
        case ErrorKind.MEMORY:  # its own limit is always hit alike
            lost = "more than the limit" not in text
        case ErrorKind.CRASH:
            lost = bool(_OUTSIDE.search(text))
        case _:
            lost = kind in MACHINE or kind is ErrorKind.TIMEOUT
    return Status.LOST if lost else Status.ERROR

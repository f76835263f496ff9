"""Observe the other work on a machine while something is measured."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

STALLED = Path("/proc/pressure/cpu")
"""The file that says, since Linux 4.20, how long some process was ready to run and had no
processor."""
_TOTAL = re.compile(r"^some .*total=(\d+)", re.MULTILINE)


class Pressure:
    """Looks at the machine from the moment at which it is made."""

    def __init__(self) -> None:
        self._began, self._stalled = time.monotonic(), _stalled_seconds()

    def share(self) -> float | None:
        """Return the share of the time since then in which some process waited for a processor;
        None where the system does not tell."""
        now, seconds = _stalled_seconds(), time.monotonic() - self._began
        if now is None or self._stalled is None or seconds <= 0:
            return None
        return min(1.0, max(0.0, (now - self._stalled) / seconds))


def _stalled_seconds() -> float | None:
    with suppress(OSError, ValueError):
        if found := _TOTAL.search(STALLED.read_text()):
            return 1e-6 * int(found[1])
    return None

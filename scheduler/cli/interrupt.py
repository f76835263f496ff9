"""Ctrl-C as a request, answered between two results."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any


class Interrupt:
    """While entered, the first Ctrl-C is only noted, and :meth:`check` raises KeyboardInterrupt.

    An exception at any moment can be lost (one raised while a C library calls back into Python
    is printed and dropped). The second Ctrl-C raises at once.
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._asked = True

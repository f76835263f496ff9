"""Ctrl-C as a request, answered between two results."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupt:
    """While entered, the first Ctrl-C is only noted, and :meth:`check` raises KeyboardInterrupt.

    An exception at any moment can be lost (one raised while a C library calls back into Python
    is printed and dropped). The second Ctrl-C raises at once. Where Ctrl-C means something else
    already, and outside of the main thread, which alone hears it, nothing is changed.
    """

    def __init__(self) -> None:
        self._asked = False
        self._listens = False

    def __enter__(self) -> Interrupt:
        self._listens = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._listens:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._asked = True

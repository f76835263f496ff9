"""Signals that ask a process to end (Ctrl-C, SIGTERM, SIGHUP), answered between two results.

A program calls :func:`listen` first of all; from then on they are :class:`Ended` wherever it is.
A tuning run, in a program of ours or in anybody's, answers them in its own time, see
:class:`Interrupt`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

AGAIN_SECONDS = 0.05
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_heard: int | None = None  # the last signal that came since this program listens


class Ended(BaseException):
    """A signal asked this program to end. It is no error, nor may anybody take it for one."""


def listen() -> None:
    """Let signals raise :class:`Ended` that would end the process without a word, or with a
    traceback. One that is ignored, as SIGHUP under nohup, stays so."""
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    sys.unraisablehook = _ask_again


def is_heard() -> bool:
    """Return True if a signal asked this program to end."""
    return _heard is not None


def exit_code() -> int:
    """Return the exit code after a signal, as shells define it: 130 for Ctrl-C."""
    return 128 + (_heard or signal.SIGINT)


def _end(number: int, frame: FrameType | None) -> None:
    global _heard
    _heard = number
    raise Ended


def _ask_again(lost: sys.UnraisableHookArgs) -> None:
    """Ask once more for an exception that was raised where none can be, in a callback."""
    if lost.exc_type is not Ended or _heard is None:
        sys.__unraisablehook__(lost)
        return
    again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), _heard))
    again.daemon = True
    again.start()


class Interrupt:
    """Delays signals: while it is entered, the first one is only noted, and :meth:`check` raises
    KeyboardInterrupt: that of the main thread, which alone hears signals, and of all others.

    An exception at any moment can be lost (one raised while a C library calls back into Python
    is dropped), and takes the result along. The second signal does what it always does. Where a
    signal means something else already, nothing is changed. Where SIGTERM or SIGHUP would have
    ended the process, it is left by SystemExit, so that all that is open gets closed on the way.
    """

    _hears: ClassVar[Interrupt | None] = None  # the one that the main thread entered first

    def __init__(self) -> None:
        self._asked: int | None = None
        self._before: dict[int, Callable[..., Any] | int | None] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread() and Interrupt._hears is None:
            Interrupt._hears = self
            known = {number: signal.getsignal(number) for number in ENDING}
            usual = (signal.SIG_DFL, signal.default_int_handler, _end)
            self._before = {number: how for number, how in known.items() if how in usual}
            for number in self._before:
                signal.signal(number, self._note)
        if _end in self._before.values():
            self._asked = _heard  # a signal whose exception was lost
        return self

    def __exit__(self, *error: object) -> None:
        if Interrupt._hears is self:
            Interrupt._hears = None
        for number, how in self._before.items():
            signal.signal(number, how)
        if self._asked is not None and self._before[self._asked] is signal.SIG_DFL:
            raise SystemExit(128 + self._asked)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came."""
        if self.is_asked():
            raise KeyboardInterrupt

    def is_asked(self) -> bool:
        """Return True if a signal came."""
        return (Interrupt._hears or self)._asked is not None

    def _note(self, number: int, frame: FrameType | None) -> None:
        global _heard
        self.check()
        self._asked = number
        if self._before[number] is _end:
            _heard = number

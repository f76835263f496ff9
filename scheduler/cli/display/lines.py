"""Lines with a clock, for a file or a pipe, and a sign of life when all was silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tilewright.scheduler.cli.output import clock, put
from tilewright.scheduler.cli.text import plain

SILENCE_SECONDS = 30.0  # silence after which a line says where the run stands


class Lines:
    """Prints lines that are never rewritten, or nothing if ``quiet``. Each line begins with
    ``name``, if there is one. From :meth:`begin` to :meth:`end` a thread prints ``where`` the run
    stands after each silence."""

    def __init__(self, where: Callable[[], str], quiet: bool = False, name: str = "") -> None:
        self._where, self._quiet = where, quiet
        self._name = f"{name}: " if name else ""
        self._begun = self._said = 0.0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._break_silence, daemon=True)

    def begin(self) -> None:
        """Start the clock and the thread."""
        self._begun = self._said = time.monotonic()
        if not self._quiet:
            self._watch.start()

    def end(self) -> None:
        """End the thread. Idempotent."""
        self._ended.set()
        if self._watch.is_alive():
            self._watch.join()

    def say(self, text: str) -> None:
        """Print one line, if there is something to say."""
        if self._quiet or not text:
            return
        self._said = time.monotonic()
        put(f"{clock(self._said - self._begun)}  {plain(self._name + text)}")

    def _break_silence(self) -> None:
        while not self._ended.wait(max(0.1, self._said + SILENCE_SECONDS - time.monotonic())):
            if time.monotonic() - self._said < SILENCE_SECONDS:
                continue
            try:
                self.say(self._where())
            except OSError:  # nobody reads any more; the tuner's own lines say so
                return

"""The process that holds a GPU, as its parent sees it: it is started, asked, heard and ended.

See :mod:`measure.cuda.server` for what it says, one line of JSON an event.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

STARTING_SECONDS = 120.0
"""Says how long a child may take to import, to open the device and to compile its own kernels."""
_ROOT = Path(__file__).parents[2]
_SERVER = (sys.executable, "-P", "-m", "tilewright.measure.cuda.server")

Event = dict[str, Any]


class Child:
    """Keeps at most one process at a time for GPU number ``device``, which ``opener`` opens there.

    :meth:`close` may come from another thread; whatever is asked of it then raises
    :class:`RuntimeError`.
    """

    def __init__(self, opener: str, device: int) -> None:
        self._opener, self._device = opener, device
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._closed = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The id of the process; None if there is none."""
        return self._process.pid if self._process is not None else None

    def start(self) -> Event:
        """Return a new process's first words; it stays if these are that it is ``ready``."""
        paths = [str(_ROOT), *sys.path[1:]]
        with self._lock:
            if self._closed:
                raise RuntimeError("the runner is closed")
            self._unread = b""
            self._process = subprocess.Popen(
                [*_SERVER, str(os.getpid()), str(self._device), self._opener],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )
        ready = self.event()
        if ready.get("event") != "ready":
            self.end()
        return ready

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send a request; if the process is gone, :meth:`event` will say so."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def event(self, patience: float | None = None) -> Event:
        """Return its next line; ``{"event": "timeout"}`` or ``"end"`` if none comes within
        ``patience`` seconds, by default those of a start.
        """
        process = self._process
        assert process is not None
        assert process.stdout is not None
        poller = select.poll()
        poller.register(process.stdout, select.POLLIN)
        deadline = time.monotonic() + (STARTING_SECONDS if patience is None else patience)
        while b"\n" not in self._unread:
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1e3):
                return {"event": "timeout"}
            block = os.read(process.stdout.fileno(), 1 << 16)
            if not block:
                return {"event": "end"}
            self._unread += block
        line, _, self._unread = self._unread.partition(b"\n")
        return dict(json.loads(line))

    def end(self) -> int:
        """Make sure that the process is gone; what it ended with."""
        process = self._process
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        code = process.poll()
        with self._lock:
            self._kill()
            self._process = None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        if self._closed:
            raise RuntimeError("the runner is closed")
        return code or 0

    def close(self) -> None:
        """Kill the process, and start no other. Idempotent."""
        with self._lock:
            self._closed = True
            self._kill()

    def _kill(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

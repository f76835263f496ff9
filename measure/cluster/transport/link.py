"""A driver's end of the pipe to its relay, the process that speaks with Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.measure.host.directories import RunDirectory
from tilewright.spaces.validation.canonical import canonical_json

CLOSE_SECONDS = 15.0  # time a local cluster has to end
_ROOT = Path(__file__).parents[3]


class Link:
    """A relay that was started with a ``configuration``: commands go, events come.

    :meth:`send` and :meth:`close` may come from any thread; one thread reads :meth:`events`.
    """

    def __init__(self, **configuration: Any) -> None:
        self._folder = RunDirectory()
        self._log = self._folder.path / "log"
        paths = [str(_ROOT), *filter(None, sys.path[1:])]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "tilewright.measure.cluster.transport.relay"),
                    canonical_json(configuration),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder.path,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # a Ctrl-C is the driver's to answer
            )
        self._writing = threading.Lock()

    def send(self, **command: Any) -> None:
        """Send a command; to nobody, if the relay is gone."""
        assert self._process.stdin is not None
        with self._writing, suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the relay's events until it ends; an unfinished last line is ignored."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                yield json.loads(line)

    def last_words(self) -> str:
        """Return the last line that the relay, or Ray in it, wrote for people."""
        with suppress(OSError):
            lines = self._log.read_text(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def close(self) -> None:
        """End the relay, and a local cluster with it. Idempotent."""
        assert self._process.stdin is not None
        with self._writing, suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.close()

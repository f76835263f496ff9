"""One call of the C compiler: bounded in time and memory, and killable with all it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MEMORY_BYTES = 4 << 30
SHARED = ("-shared", "-fPIC", "-w", "-Wl,-z,defs")
ERROR_LINES = 5
ERROR_CHARACTERS = 1000

# POSIX has no other way to limit a process that is not our own without racing with its start.
# The script is fixed; the command comes as arguments and is never parsed by the shell.
_LIMITED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2"; shift 2; exec "$@"'


@dataclass(frozen=True)
class Compilation:
    """How a compiler's run ended. ``seconds`` is CPU time; ``text`` its messages if it failed."""

    ok: bool
    seconds: float
    timed_out: bool = False
    text: str = ""


class Compilations:
    """Runs compilers; :meth:`close` kills those under way, from any thread."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def run(
        self, command: Sequence[str | os.PathLike[str]], directory: Path, limit: float
    ) -> Compilation:
        """Run ``command`` in ``directory`` for at most ``limit`` seconds of wall time."""
        arguments = ["sh", "-c", _LIMITED, "sh", str(MEMORY_BYTES >> 10), str(int(limit) + 1)]
        log = directory / f"log-{threading.get_ident()}"
        with open(log, "wb") as messages, self._lock:
            if self._closed:
                return Compilation(False, 0.0, text="cancelled")
            process = subprocess.Popen(
                [*arguments, *command],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
            self._running.add(process.pid)
        status, seconds, timed_out = self._wait(process.pid, limit)
        process.returncode = status
        words = log.read_text(errors="replace")
        log.unlink()
        if status == 0:
            return Compilation(True, seconds)
        ended = f"no end within {limit:g} s" if timed_out else _ending(status)
        return Compilation(False, seconds, timed_out, _useful_lines(words, directory) or ended)

    def close(self) -> None:
        """Kill what is running; later runs fail at once. Idempotent."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill_group(process)

    def _wait(self, process: int, limit: float) -> tuple[int, float, bool]:
        descriptor = os.pidfd_open(process)
        try:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            timed_out = not poller.poll(limit * 1e3)
        finally:
            os.close(descriptor)
        with self._lock:
            if timed_out:
                _kill_group(process)
            _, status, usage = os.wait4(process, 0)
            self._running.discard(process)
        code = os.waitstatus_to_exitcode(status)
        return code, usage.ru_utime + usage.ru_stime, timed_out


def _ending(status: int) -> str:
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    return f"the compiler {how} without a word"


def _kill_group(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def _useful_lines(text: str, directory: Path) -> str:
    """The first errors, without the temporary folder's name; failing those, the first lines."""
    lines = [line.replace(f"{directory}/", "").strip() for line in text.splitlines()]
    errors = [line for line in lines if "error" in line or "undefined reference" in line]
    return "\n".join((errors or lines)[:ERROR_LINES])[:ERROR_CHARACTERS]

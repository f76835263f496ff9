"""One call of the C compiler: bounded in time and memory, and ended with all it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilewright.measure.cpu.keeper import end, supervised
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel

MEMORY_BYTES = 4 << 30
SHARED = ("-shared", "-fPIC", "-w", "-Wl,-z,defs")
ERROR_LINES = 5
ERROR_CHARACTERS = 1000


def in_groups(kernels: Iterable[Kernel], size: int) -> list[list[Kernel]]:
    """Return the groups of at most ``size`` for one library each, in which an entry occurs once."""
    groups: list[list[Kernel]] = []
    for kernel in kernels:
        for group in groups:
            entries = {other.call.entry for other in group}
            if len(group) < size and kernel.call.entry not in entries:
                group.append(kernel)
                break
        else:
            groups.append([kernel])
    return groups


@dataclass(frozen=True)
class Compilation:
    """The outcome of a compiler's run. ``seconds`` is CPU time; ``text`` has its messages if it
    failed.
    """

    ok: bool
    seconds: float
    timed_out: bool = False
    text: str = ""


class Compilations:
    """Runs compilers; :meth:`close` kills those under way, from any thread.

    They and what they start are ``supervised``: nothing of them outlives this process, however it
    ends. Only the supervisor itself has to be built without.
    """

    def __init__(self, supervised: bool = True) -> None:
        self._supervised = supervised
        self._running: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def run(
        self, command: Sequence[str | os.PathLike[str]], directory: Path, limit: float
    ) -> Compilation:
        """Run ``command`` in ``directory`` for at most ``limit`` seconds of wall time.

        Its temporary files are in ``directory``, too: one that is killed leaves them.
        """
        if self._supervised:
            with suppress(InputError):  # a cache that runs no programs costs this, but no answer
                command = supervised(command, MEMORY_BYTES, int(limit) + 1)
        log = directory / f"log-{threading.get_ident()}"
        with open(log, "wb") as messages, self._lock:
            if self._closed:
                return Compilation(False, 0.0, text="cancelled")
            process = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, "TMPDIR": str(directory)},
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
                end(process)

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
                end(process)
            _, status, usage = os.wait4(process, 0)
            self._running.discard(process)
        code = os.waitstatus_to_exitcode(status)
        return code, usage.ru_utime + usage.ru_stime, timed_out


def _ending(status: int) -> str:
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    return f"the compiler {how} without a word"


def _useful_lines(text: str, directory: Path) -> str:
    """Return the first errors, without the temporary folder's name; failing those, the first
    lines."""
    lines = [line.replace(f"{directory}/", "").strip() for line in text.splitlines()]
    errors = [line for line in lines if "error" in line or "undefined reference" in line]
    return "\n".join((errors or lines)[:ERROR_LINES])[:ERROR_CHARACTERS]

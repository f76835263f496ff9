"""NumPy's product in a process of its own, timed in turns with candidates by the server's orders.

It answers as the process of a candidate does (child.c): untimed calls, then timed ones, by the same
clock, on the same cores, after the same flush of caches. Only the runner tells it to end.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from tilewright.measure.baseline import environment, matrices, serves
from tilewright.measure.cpu.keeper import end, supervised
from tilewright.measure.records.measurement import NUMPY, Job
from tilewright.spaces.operators import workload_from_json
from tilewright.spaces.workloads.workload import Workload

START_SECONDS = 10.0  # it may take to start, on a busy machine
LINE_BYTES = 64
ORDER = struct.Struct("@Iii")
"""``order`` of child.h: a token, untimed calls, timed calls."""
REPLY = struct.Struct("@Iii2d24s512s")
"""``reply`` of child.h, of which a rival fills in the token and the first time."""
PROCESS = struct.Struct("@i")


class Rival:
    """The process, from its start to :meth:`close`. ``cpus`` are those of several threads;
    ``flush_bytes`` are written before each timed call."""

    def __init__(
        self, workload: Workload, threads: int, wall: bool, flush_bytes: int, cpus: Sequence[int]
    ) -> None:
        self.workload = workload
        self._process: int | None = None
        self._channel, theirs = socket.socketpair()
        with theirs:
            numbers = (theirs.fileno(), int(wall), flush_bytes, *(cpus if threads > 1 else ()))
            self._keeper = subprocess.Popen(
                supervised(
                    [sys.executable, "-P", "-m", "tilewright.measure.cpu.rival", *map(str, numbers)]
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(threads),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        assert self._keeper.stdin is not None
        with suppress(OSError), self._keeper.stdin as stream:
            stream.write(json.dumps(workload.to_json()).encode())

    @property
    def channel(self) -> int:
        """The descriptor by which it takes orders."""
        return self._channel.fileno()

    def process(self) -> int | None:
        """The id of its process once it is ready; None if it never gets ready."""
        if self._process is None:
            with suppress(OSError):
                self._channel.settimeout(START_SECONDS)
                told = self._channel.recv(PROCESS.size, socket.MSG_WAITALL)
                self._channel.settimeout(None)
                if len(told) == PROCESS.size:
                    (self._process,) = PROCESS.unpack(told)
        return self._process

    def close(self) -> None:
        """End it. Idempotent."""
        if self._keeper.poll() is None:
            end(self._keeper.pid)
            self._keeper.wait()
        self._channel.close()


class Rivals:
    """Keeps the rival of the latest job that asked for one, for its further comparisons. One that
    failed is not tried again. Threads may share it."""

    def __init__(self, threads: int, wall: bool, cpus: Sequence[int]) -> None:
        self._threads, self._wall, self._cpus = threads, wall, cpus
        self._rival: Rival | None = None
        self._failed: Workload | None = None
        self._closed = False
        self._lock = threading.Lock()

    def of(self, job: Job, flush_bytes: int) -> Rival | None:
        """Return the rival of a job, which may still be starting; None if it asks for none, or
        NumPy has no fast product."""
        workload = job.workload
        if NUMPY not in job.rivals or not serves(workload) or workload == self._failed:
            return None
        with self._lock:
            if self._closed:
                return None
            if self._rival is None or self._rival.workload != workload:
                self._end()
                self._rival = Rival(workload, self._threads, self._wall, flush_bytes, self._cpus)
            return self._rival

    def fail(self) -> None:
        """Note that it ended, or did not obey."""
        with self._lock:
            self._failed = self._rival.workload if self._rival else None
            self._end()

    def close(self) -> None:
        """End it for good. Idempotent."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        if self._rival is not None:
            self._rival.close()
            self._rival = None


def _serve(
    channel: socket.socket, call: Callable[[], object], wall: bool, flush_bytes: int
) -> None:
    """Time calls as ordered, until nobody listens any more."""
    clock = time.perf_counter if wall else time.thread_time
    lines = np.zeros(flush_bytes, np.uint8)[::LINE_BYTES]

    def timed(calls: int) -> float:
        np.add(lines, 1, out=lines)
        start = clock()
        for _ in range(calls):
            call()
        return (clock() - start) / calls

    channel.sendall(PROCESS.pack(os.getpid()))
    while len(order := channel.recv(ORDER.size, socket.MSG_WAITALL)) == ORDER.size:
        token, untimed, calls = ORDER.unpack(order)
        if untimed:
            timed(untimed)
        channel.sendall(REPLY.pack(token, 0, calls, timed(calls), 0.0, b"", b""))


def _main(descriptor: int, wall: int, flush_bytes: int, *cpus: int) -> None:
    if cpus:
        os.sched_setaffinity(0, cpus)
    first, second = matrices(workload_from_json(json.load(sys.stdin)))
    out = np.matmul(first, second)
    gc.disable()
    with socket.socket(fileno=descriptor) as channel, suppress(BrokenPipeError):
        _serve(channel, lambda: np.matmul(first, second, out=out), bool(wall), flush_bytes)


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:]))

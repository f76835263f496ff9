"""The three seams of measuring: a builder, a runner, and the executor that joins them.

A second target brings its own builder and runner; a cluster brings its own executor. The tuner
knows executors only.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tilewright.measure.failures import MACHINE
from tilewright.measure.records.measurement import (
    Candidate,
    ErrorKind,
    Job,
    Measurement,
    Place,
    Result,
    Status,
)
from tilewright.spaces.target import Target


@dataclass(frozen=True)
class Built:
    """A candidate's binary, or why there is none.

    ``binary`` is a file of this machine, or the file's bytes where it comes from another one;
    ``toolchain`` is the compiler and its version.
    """

    candidate: Candidate
    binary: Path | bytes | None = None
    seconds: float = 0.0  # CPU time of the compiler, this candidate's share
    error_kind: ErrorKind | None = None
    error_text: str = ""
    info: dict[str, Any] | None = None
    toolchain: str = ""

    def failure(self) -> Measurement:
        """Make the measurement that records a candidate without a binary."""
        return Measurement(
            schedule=self.candidate.schedule,
            status=Status.LOST if self.error_kind in MACHINE else Status.ERROR,
            round=self.candidate.job.round,
            error_kind=self.error_kind,
            error_text=self.error_text,
            build_seconds=self.seconds,
            started_at=time.time(),
            info=dict(self.info or {}),
            place=Place(platform.node(), toolchain=self.toolchain),
        )


class Builder(Protocol):
    """Source to binary. ``batch`` is how many candidates at a time keep its compilers busy."""

    batch: int

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """Return the binaries in the order of ``candidates``, made in parallel. Never raises for a
        candidate's own fault: that is a ``Built`` with an error."""
        ...

    def close(self) -> None:
        """Free what is held. Idempotent."""
        ...


class Runner(Protocol):
    """Binary to verified, timed measurement. One batch at a time; not thread-safe.

    A candidate that was lost with its measuring process, or ran out of time or memory beside
    others, comes back as ``LOST``: whoever runs a runner tries it again (``measure.retrying``).
    """

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """Return the measurements in the order of ``built``: candidates of ``job``, with a binary
        each."""
        ...

    def close(self) -> None:
        """Stop the child. Idempotent."""
        ...


class Executor(Protocol):
    """An interface that takes candidates and gives their results, in any order.

    Several jobs may share one executor, from several threads: jobs with the same ``id`` are the
    same one.
    """

    @property
    def batch(self) -> int:
        """The number of candidates that keeps it busy."""
        ...

    @property
    def devices(self) -> int:
        """The number of candidates that run side by side, each on a device of its own."""
        ...

    @property
    def ahead(self) -> int:
        """The number of batches that may be pending when another is requested, so that no device
        waits for one to be built.
        """
        ...

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates of ``job`` for building and running; returns at once.
        :class:`InputError` if no kernel of its workload can be verified."""
        ...

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        """Return the results of these jobs since the last call; of all jobs if none is named.

        Waits for at least one result, at most ``timeout`` seconds. The list is empty when nothing
        is pending or time is up.
        """
        ...

    def pending(self, job: Job | None = None) -> int:
        """Return the number of candidates, of one job or of all, submitted whose results were not
        returned yet."""
        ...

    def cancel(self, job: Job) -> None:
        """Drop the candidates of ``job`` that do not run yet: they are pending no more, and give
        no result. Those that run still do."""
        ...

    def drop(self, job: Job) -> None:
        """Forget ``job``: cancel what waits, and ignore the results of what runs."""
        ...

    def lacking(self, target: Target) -> str:
        """Say which workers ``target`` has lost, and why; empty while it has enough."""
        ...

    def close(self) -> None:
        """Stop all work and all children. Idempotent."""
        ...

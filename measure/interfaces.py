"""The three seams of measuring: a builder, a runner, and the executor that joins them.

A second target brings its own builder and runner; a cluster brings its own executor. The tuner
knows executors only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from measure.measurement import Candidate, ErrorKind, Measurement


@dataclass(frozen=True)
class Built:
    """A candidate's binary, or why there is none."""

    candidate: Candidate
    path: Path | None = None
    seconds: float = 0.0  # CPU time of the compiler, this candidate's share
    error_kind: ErrorKind | None = None
    error_text: str = ""
    info: dict[str, Any] | None = None


class Builder(Protocol):
    """Source to binary. ``batch`` is how many candidates at a time keep its compilers busy."""

    batch: int

    def build(self, candidates: Sequence[Candidate]) -> list[Built]:
        """Binaries in the order of ``candidates``, made in parallel. Never raises for a
        candidate's own fault: that is a ``Built`` with an error."""
        ...

    def close(self) -> None:
        """Free what is held. Idempotent."""
        ...


class Runner(Protocol):
    """Binary to verified, timed measurement. One workload at a time; not thread-safe."""

    def run(
        self, built: Sequence[Built], best: float | None = None, final: bool = False
    ) -> list[Measurement]:
        """Measurements in the order of ``built``, all of one workload and target.

        ``best`` is the latency to beat (seconds): far slower candidates are cut short. ``final``
        asks for the long interleaved comparison of the few best.
        """
        ...

    def close(self) -> None:
        """Stop the child. Idempotent."""
        ...


class Executor(Protocol):
    """Where candidates go and results come from, in any order. ``batch`` is how many at a time
    keep it busy."""

    batch: int

    def submit(self, candidates: Sequence[Candidate], final: bool = False) -> None:
        """Queue candidates for building and running; returns at once."""
        ...

    def results(self, timeout: float | None = None) -> list[Measurement]:
        """What has become known since the last call; waits for at least one result, at most
        ``timeout`` seconds; empty when nothing is pending or time is up."""
        ...

    def pending(self) -> int:
        """Number of candidates submitted whose results were not returned yet."""
        ...

    def cancel(self) -> None:
        """Drop the candidates that do not run yet: they are pending no more, and give no result.
        Those that run still do."""
        ...

    def set_best(self, latency: float) -> None:
        """Tell the runners the latency to beat, in seconds."""
        ...

    def close(self) -> None:
        """Stop all work and all children. Idempotent."""
        ...

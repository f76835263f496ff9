"""The server's reports on the candidates that it runs (see server.c), line by line."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.measure.records.measurement import ErrorKind, Status


@dataclass
class CandidateReport:
    """The server's report on one candidate."""

    started_at: float
    samples: list[float] = field(default_factory=list)
    references: list[float] = field(default_factory=list)
    disturbed: int = 0
    status: Status = Status.OK
    took: float = 0.0
    error_kind: ErrorKind | None = None
    error_text: str = ""
    rivals: dict[str, list[float]] = field(default_factory=dict)  # samples of each, in its rounds
    waited: float | None = None  # share of the time in which processes waited for a processor

    def fail(self, status: Status, kind: ErrorKind, text: str) -> None:
        """CandidateReport a failure with its kind and text."""
        self.status, self.error_kind, self.error_text = status, kind, text

    def add_verdict(self, other: CandidateReport, where: str) -> None:
        """Add the verdict on another problem."""
        self.took += other.took
        if other.error_kind is not None:
            self.fail(other.status, other.error_kind, f"{other.error_text} ({where})")


@dataclass
class ServerReports:
    """The server's reports on all candidates and on the ``rivals``, whose numbers follow theirs."""

    records: list[CandidateReport]
    rivals: list[CandidateReport] = field(default_factory=list)
    ready: bool = False
    done: bool = False
    refusal: str = "the measuring process does not start"

    def take(self, words: list[str]) -> None:
        """Take over one line of the server."""
        every = [*self.records, *self.rivals]
        match words:
            case ["error" | "lost" as how, i, kind, *text]:
                status = Status.LOST if how == "lost" else Status.ERROR
                every[int(i)].fail(status, ErrorKind(kind), " ".join(text))
            case ["slow", i, seconds]:
                self.records[int(i)].status = Status.SLOW
                self.records[int(i)].samples = [float(seconds)]
            case ["sample", i, seconds]:
                every[int(i)].samples.append(float(seconds))
            case ["took", i, seconds]:
                self.records[int(i)].took = float(seconds)
            case ["reference", seconds]:
                for record in self.records:
                    record.references.append(float(seconds))
            case ["disturbed"]:
                for record in self.records:
                    record.disturbed += 1
            case ["ready" | "done" as event]:
                setattr(self, event, True)
            case ["refused", *text]:
                self.refusal = " ".join(text)

    def end(self, *rivals: str, waited: float | None = None) -> list[CandidateReport]:
        """The records, once the server is gone: if it died, who was not done with is lost. The
        ``rivals`` are called so, and processes ``waited`` for a processor meanwhile."""
        found = dict(zip(rivals, (rival.samples for rival in self.rivals), strict=False))
        for record in self.records:
            record.rivals, record.waited = found, waited
            if not self.done and record.status is Status.OK:
                if self.ready:
                    text = "the measuring process died, or fell silent"
                    record.fail(Status.LOST, ErrorKind.WORKER_LOST, text)
                else:
                    record.fail(Status.LOST, ErrorKind.DEVICE, self.refusal)
        return self.records


def lines(process: subprocess.Popen[str], patience: float) -> Iterator[list[str]]:
    """Yield the server's lines as words, up to its end, or until none comes in time."""
    assert process.stdout is not None
    rest, poller = b"", select.poll()
    poller.register(process.stdout, select.POLLIN)
    while poller.poll(patience * 1e3):
        block = os.read(process.stdout.fileno(), 1 << 16)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").split()
        if not block:
            return

"""Verifies and times cubins on the GPU of this machine, in a supervised child.

The child (:mod:`measure.cuda.server`) keeps the GPU's context from batch to batch, for making one
takes most of a second. An error of the device, a crash or a hang costs one candidate its turn
and a fresh child, which proves that the device still computes before the others run again.
"""

from __future__ import annotations

import platform
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.measure.cuda.child import Child
from tilewright.measure.cuda.heating import HEAT_SECONDS
from tilewright.measure.cuda.server import DRIVER, request
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import ErrorKind, Job, Measurement, Place, Status
from tilewright.measure.timing import FINAL, SEARCH, TimingProtocol, steady_score
from tilewright.measure.unpacking import unpacked
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.errors import InputError

LEAST_SECONDS = 5.0
"""A call that takes less does not hang, however little it does."""
LEAST_RATE = 1e11
"""A call of more seconds that does less work in each hangs."""
STARTS = 3
"""Failed starts of a child in a row before the device is given up."""

OF_THE_MACHINE = (ErrorKind.MEMORY, ErrorKind.DEVICE)
"""Errors of the child if others held the memory, or the binary cannot be read."""

DEVICE_SEARCH = replace(SEARCH, samples=10, contender_samples=5, budget=50e-3)
DEVICE_FINAL = replace(FINAL, samples=30, contender_samples=10, heat=HEAT_SECONDS)


class CudaRunner:
    """Measures candidates of one CUDA target on GPU number ``device`` of this machine.

    Samples are device time with a cold L2. :class:`InputError` where there is no usable GPU, or
    another one. :meth:`close` may come from another thread and ends a run. ``opener`` names what
    opens the device in the child; ``protocol`` takes the place of the usual ones.
    """

    def __init__(
        self,
        target: CudaTarget,
        opener: str = DRIVER,
        protocol: TimingProtocol | None = None,
        least_seconds: float = LEAST_SECONDS,
        device: int = 0,
    ) -> None:
        self._target, self._protocol = target, protocol
        self._device = device
        self._least_seconds = least_seconds
        self._child = Child(opener, device)
        self._why_it_ended = ""
        ready = self._child.start()
        if ready.get("event") != "ready":
            self.close()
            raise InputError(
                f"no GPU to run on: {ready.get('text', 'the device does not answer')}; it takes "
                "an NVIDIA GPU with its driver and `pip install 'tilewright[cuda]'`; "
                "tilewright verify works without"
            )
        found = ready["architecture"], ready["name"]
        if found != (target.name, target.model):
            self.close()
            raise InputError(
                f"the target is {target.model} ({target.name}), but the GPU here is "
                f"{found[1]} ({found[0]}); allowed to run on it: --target cuda"
            )

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """Return the measurements in the order of ``built``."""
        started, begun = time.time(), time.monotonic()
        with unpacked(built) as built:
            answers = self._answers(job, built)
        share = (time.monotonic() - begun) / max(len(built), 1)
        return [
            self._measurement(job, b, answer, started, share)
            for b, answer in zip(built, answers, strict=True)
        ]

    def close(self) -> None:
        """Kill the child. Idempotent."""
        self._child.close()

    def _measurement(
        self, job: Job, built: Built, answer: _Answer, started: float, seconds: float
    ) -> Measurement:
        return Measurement(
            schedule=built.candidate.schedule,
            status=answer.status,
            score=steady_score(answer.samples) if answer.error_kind is None else None,
            samples=answer.samples,
            reference_samples=answer.references,
            clock="device",
            round=job.round,
            error_kind=answer.error_kind,
            error_text=answer.error_text,
            build_seconds=built.seconds,
            run_seconds=seconds,
            started_at=started,
            info=dict(built.info or {}),
            place=Place(platform.node(), f"{self._target.model} {self._device}", built.toolchain),
        )

    # -- the child -------------------------------------------------------------------------

    def _answers(self, job: Job, built: Sequence[Built]) -> list[_Answer]:
        """Collect the child's answer on each of ``built``; candidates that it did not come to are
        sent again.
        """
        answers: dict[int, _Answer] = {}
        failed = 0
        while pending := [i for i in range(len(built)) if i not in answers]:
            try:
                told = self._serve(job, [built[i] for i in pending])
            except _NoChildError as error:
                answers |= dict.fromkeys(pending, _unserved(str(error)))
                break
            answers |= {pending[i]: answer for i, answer in told.items()}
            failed = 0 if told else failed + 1
            if failed == STARTS:
                why = self._why_it_ended
                text = f"the measuring process of the GPU ends before it measures{why}"
                answers |= dict.fromkeys(pending, _unserved(text))
        return [answers[i] for i in range(len(built))]

    def _serve(self, job: Job, group: Sequence[Built]) -> dict[int, _Answer]:
        """Send ``group`` to the child; returns answers by index, without candidates that it did not
        come to.
        """
        self._ensure_child()
        protocol = self._protocol or (DEVICE_FINAL if job.final else DEVICE_SEARCH)
        self._child.ask(request(job, group, protocol, secrets.randbits(31)))
        limit = max(self._least_seconds, job.workload.work / LEAST_RATE)
        answers: dict[int, _Answer] = {}
        culprit: int | None = None
        while True:
            event = self._child.event(None if culprit is None else limit)
            match event.get("event"):
                case "done":
                    return answers
                case "draw":
                    pass
                case "result":
                    answers[event["index"]] = _Answer.of(event)
                case "load" | "run" | "time":
                    culprit = event["index"]
                case end:
                    code = self._child.end()
                    self._why_it_ended = f": {event['text']}" if "text" in event else ""
                    if culprit is not None:
                        answers[culprit] = _loss(end, event, code, limit)
                    return answers

    def _ensure_child(self) -> None:
        """Ensure that there is a child that has proved the device; a fault may take that a moment
        to get over."""
        for _ in range(STARTS):
            if self._child.pid is not None:
                return
            ready = self._child.start()
            if ready.get("event") != "ready":
                time.sleep(1.0)
        if self._child.pid is None:
            raise _NoChildError(f"the GPU does not answer any more: {ready.get('text', ready)}")


class _NoChildError(RuntimeError):
    """No child starts, or none that finds the device well."""


@dataclass(frozen=True)
class _Answer:
    """The child's answer on one candidate."""

    status: Status
    error_kind: ErrorKind | None = None
    error_text: str = ""
    samples: tuple[float, ...] = ()
    references: tuple[float, ...] = ()

    @staticmethod
    def of(event: Mapping[str, Any]) -> _Answer:
        kind = None if event["error_kind"] is None else ErrorKind(event["error_kind"])
        right = Status.SLOW if event["slow"] else Status.OK
        wrong = Status.LOST if kind in OF_THE_MACHINE else Status.ERROR
        return _Answer(
            right if kind is None else wrong,
            kind,
            event["error_text"],
            tuple(event["samples"]),
            tuple(event["references"]),
        )


def _unserved(text: str) -> _Answer:
    """Return the answer for a candidate that never ran."""
    return _Answer(Status.LOST, ErrorKind.DEVICE, text)


def runner(target: CudaTarget, device: int) -> CudaRunner:
    """Return the runner of this machine's GPU of this number."""
    return CudaRunner(target, device=device)


def _loss(end: str | None, event: Mapping[str, Any], code: int, limit: float) -> _Answer:
    """Return the answer for the candidate that was running when the child died."""
    if end == "lost":
        return _Answer(Status.LOST, ErrorKind.WORKER_LOST, str(event["text"]))
    if end == "timeout":
        text = f"no answer from the device within {limit:g} s"
        return _Answer(Status.LOST, ErrorKind.TIMEOUT, text)
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    text = f"the measuring process ended by {name}"
    return _Answer(Status.LOST, ErrorKind.WORKER_LOST, text)

"""Verifies and times built kernels in a supervised child: see server.c for what it does."""

from __future__ import annotations

import os
import platform
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tilewright.measure.busy import CORES, LOAD, WAITED
from tilewright.measure.cpu.binaries import server_binary
from tilewright.measure.cpu.cache_flush import flush_bytes
from tilewright.measure.cpu.cores import one_cpu_per_core, usable_cpus
from tilewright.measure.cpu.keeper import end, supervised
from tilewright.measure.cpu.memory import buffer_bytes, outputs_bytes
from tilewright.measure.cpu.problem import Problem, index_of
from tilewright.measure.cpu.rival import Rivals
from tilewright.measure.cpu.session import CandidateReport, ServerReports, lines
from tilewright.measure.drawing.draw import are_for, fresh_inputs
from tilewright.measure.drawing.further_draws import further_draws, has_further_draws
from tilewright.measure.drawing.interfaces import Draw, FreshInputs
from tilewright.measure.estimates import rivals_info
from tilewright.measure.host.pressure import Pressure
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import NUMPY, Job, Measurement, Place
from tilewright.measure.timing import (
    VERIFICATION,
    TimingProtocol,
    call_limit,
    protocol_for,
    score_on_cpu,
)
from tilewright.measure.unpacking import unpacked
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.workloads.workload import Workload

MEMORY_BYTES = 512 << 20  # memory a candidate may allocate beside its buffers
MAX_CANDIDATES = 256  # candidates of one server, as in plan.h
GRACE_SECONDS = 30.0  # a line of the server may come this late


class CRunner:
    """Measures candidates of one CPU target.

    Every call of :meth:`run` starts a server (some milliseconds) on fresh random inputs. With
    one thread time is the CPU time of the calling thread, which other processes disturb little;
    with more it is wall time. Before calls on large arrays caches are flushed
    (:mod:`measure.cpu.cache_flush`). :meth:`close` may come from another thread and ends a run.
    ``clock``, ``protocol`` and ``flush_bytes`` (written before each timed call) take
    the place of what suits the target and the workload, for experiments.
    """

    def __init__(
        self,
        target: CpuTarget,
        memory_bytes: int = MEMORY_BYTES,
        clock: str = "",
        protocol: TimingProtocol | None = None,
        flush_bytes: int | None = None,
    ) -> None:
        self._target = target
        self._memory_bytes = memory_bytes
        self._clock = clock or ("cpu" if target.threads == 1 else "wall")
        self._protocol = protocol
        self._flush_setting = flush_bytes
        self._cpus = one_cpu_per_core()
        self._inputs: FreshInputs | None = None
        self._rivals = Rivals(target.threads, self._clock == "wall", self._pinned)
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def run(self, job: Job, built: Sequence[Built]) -> list[Measurement]:
        """Return the measurements in the order of ``built``."""
        with unpacked(built) as built:
            return [
                self._measurement(job, b, record)
                for group in _groups(built, buffer_bytes(job.workload))
                for b, record in zip(group, self._records(job, group), strict=True)
            ]

    def close(self) -> None:
        """Kill the child and all candidates. Idempotent."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                end(self._process.pid)
        self._rivals.close()

    def _draw(self, workload: Workload, final: bool) -> Draw:
        if self._inputs is None or not are_for(self._inputs, workload):
            self._inputs = None  # the old ones' memory first
            self._inputs = fresh_inputs(workload, secrets.randbits(63), pause=self._go_on)
        return self._inputs.draw(secrets.randbits(63), final)

    def _go_on(self) -> None:
        if self._closed:
            raise RuntimeError("the runner is closed")

    # -- the child -------------------------------------------------------------------------

    def _records(self, job: Job, group: Sequence[Built]) -> list[CandidateReport]:
        """Return the server's records of a group. In a thorough job they cover further inputs,
        too.
        """
        protocol = self._protocol or protocol_for(self._clock, job.final)
        records = self._serve(job, group, protocol)
        if job.thorough and has_further_draws(job.workload):
            kept = [b.candidate.numerics for b in group]
            for numerics in dict.fromkeys(kept):
                own = [i for i, each in enumerate(kept) if each is numerics]
                self._judge_on_others(job, group, records, own, numerics)
        return records

    def _judge_on_others(
        self,
        job: Job,
        group: Sequence[Built],
        records: Sequence[CandidateReport],
        own: Sequence[int],
        numerics: Numerics,
    ) -> None:
        """Add to the records of a group's ``own`` candidates, which keep the promise of
        ``numerics``, what is wrong of them on other inputs. The memory of the first ones is free
        once the server has its inputs.
        """
        draws = further_draws(self._draw(job.workload, job.final), numerics=numerics)
        for number, other in enumerate(draws, 1):
            right = [i for i in own if records[i].error_kind is None]
            if not right:
                break
            found = self._serve(job, [group[i] for i in right], VERIFICATION, other)
            for i, record in zip(right, found, strict=True):
                records[i].add_verdict(record, other.name or f"other inputs {number}")

    def _serve(
        self,
        job: Job,
        group: Sequence[Built],
        protocol: TimingProtocol,
        other: Draw | None = None,
    ) -> list[CandidateReport]:
        """Run a group on a server with a draw of the job, or with the ``other`` one. The server
        starts while inputs are drawn, as do the job's rivals.
        """
        limit = call_limit(job.workload.work, job.best)
        rival = None if other else self._rivals.of(job, self._flush_bytes(job.workload))
        with Problem(job.workload) as problem:
            process = self._start(problem.descriptor, *([rival.channel] if rival else []))
            try:
                problem.fill(other or self._draw(job.workload, job.final))
                beside = f"{rival.process()} {rival.channel}" if rival and rival.process() else ""
                session = ServerReports(
                    [CandidateReport(time.time()) for _ in group],
                    [CandidateReport(time.time())] if beside else [],
                )
                pressure = Pressure()
                assert process.stdin is not None
                with suppress(BrokenPipeError):
                    process.stdin.write(self._plan(problem, job, group, limit, protocol))
                    process.stdin.write(f"1\n{beside}\n" if beside else "0\n")
                    process.stdin.flush()
                for words in lines(process, 8 * limit + GRACE_SECONDS):
                    session.take(words)
            finally:
                with self._lock:
                    end(process.pid)
                    self._process = None
                process.communicate()
        if rival and not (session.done and session.rivals and session.rivals[0].samples):
            self._rivals.fail()
        return session.end(NUMPY, waited=pressure.share())

    def _start(self, *descriptors: int) -> subprocess.Popen[str]:
        command = supervised(
            [server_binary()]
        )  # which may be built now: nobody is to wait for that
        with self._lock:
            self._go_on()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=descriptors,
                start_new_session=True,
            )
            return self._process

    def _plan(
        self,
        problem: Problem,
        job: Job,
        group: Sequence[Built],
        limit: float,
        protocol: TimingProtocol,
    ) -> str:
        """Return the text that plan.c reads."""
        lines = [
            f"{self._target.threads} {int(self._clock == 'wall')} {limit} {self._memory_bytes}",
            str(self._flush_bytes(job.workload)),
            f"{float('inf') if job.best is None else job.best}",
            _numbers(protocol),
            str(secrets.randbits(63)),
            " ".join(map(str, self._pinned)),
            problem.text,
            str(len(group)),
        ]
        for built in group:
            call = built.candidate.kernel.call
            lines.append(f"{call.workspace_bytes} {call.workspace_zeroed} {call.entry}")
            lines.append(str(built.binary))
        return "\n".join(lines) + "\n"

    @property
    def _pinned(self) -> list[int]:
        """The CPU of each thread of a kernel."""
        return [self._cpus[i % len(self._cpus)] for i in range(self._target.threads)]

    def _flush_bytes(self, workload: Workload) -> int:
        return flush_bytes(workload) if self._flush_setting is None else self._flush_setting

    def _measurement(self, job: Job, built: Built, record: CandidateReport) -> Measurement:
        info = dict(built.info or {})
        if flushed := self._flush_bytes(job.workload):
            info["bytes_elsewhere"] = flushed
        if record.disturbed:
            info["disturbed_rounds"] = record.disturbed
        if job.final:
            info |= rivals_info(record.rivals, record.samples)
            info |= _work_beside(record.waited)
        statistic = score_on_cpu(self._clock, job.final, bool(flushed))
        return Measurement(
            schedule=built.candidate.schedule,
            status=record.status,
            score=statistic(record.samples) if record.error_kind is None else None,
            samples=tuple(record.samples),
            reference_samples=tuple(record.references),
            clock=self._clock,
            round=job.round,
            error_kind=record.error_kind,
            error_text=_readable(record.error_text, job.workload),
            build_seconds=built.seconds,
            run_seconds=record.took,
            started_at=record.started_at,
            info=info,
            place=Place(platform.node(), self._target.model, built.toolchain),
        )


def _work_beside(waited: float | None) -> dict[str, float]:
    """Report the other work of the machine, see :mod:`measure.busy`."""
    if waited is not None:
        return {WAITED: waited}
    return {LOAD: os.getloadavg()[0], CORES: usable_cpus()}


def runner(target: CpuTarget, device: int) -> CRunner:
    """Return the runner of this machine, which has one CPU."""
    return CRunner(target)


def _groups(built: Sequence[Built], limit: int) -> Iterator[list[Built]]:
    """Cuts a batch into parts that one server takes and whose buffers are ``limit`` bytes together,
    unless one alone is larger."""
    group: list[Built] = []
    total = 0
    for b in built:
        candidate = b.candidate
        size = outputs_bytes(candidate.job.workload) + candidate.kernel.call.workspace_bytes
        if group and (len(group) == MAX_CANDIDATES or total + size > limit):
            yield group
            group, total = [], 0
        group.append(b)
        total += size
    if group:
        yield group


def _numbers(p: TimingProtocol) -> str:
    """Return the protocol in the order in which plan.h declares it."""
    return (
        f"{p.slow_factor} {p.cold_seconds} {p.recheck_seconds} {p.sample_seconds} {p.budget} "
        f"{p.samples} {p.contender_factor} {p.contender_samples} {p.drift}"
    )


def _readable(text: str, workload: Workload) -> str:
    """Signal numbers to names, outputs and positions in them to names and indices."""

    def element(match: re.Match[str]) -> str:
        if (number := int(match[1])) >= len(workload.outputs):
            return match[0]  # a hostile candidate's
        output = workload.outputs[number]
        return f"{output.name}{list(index_of(int(match[2]), output))}"

    text = re.sub(r"^signal (\d+)$", lambda match: signal.Signals(int(match[1])).name, text)
    return re.sub(r"^@(\d+):(\d+)", element, text)

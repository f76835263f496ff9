"""The driver's state machine: it takes events from the cluster, and gives results and commands.
Pure.

It knows the :mod:`fleet <measure.cluster.driver.fleet>`, the :mod:`backlog
<measure.cluster.driver.backlog>` and who :mod:`drifts <measure.cluster.driver.drift>`; events and
commands are those of :mod:`measure.cluster.transport.relay`. Times are Unix times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilewright.measure.cluster.driver.backlog import Backlog
from tilewright.measure.cluster.driver.drift import Drift
from tilewright.measure.cluster.driver.fleet import Fleet, FleetWorker
from tilewright.measure.cluster.driver.plan import Needs, Node
from tilewright.measure.cluster.driver.progress import job_status, lacking, worker_status
from tilewright.measure.cluster.driver.ready_workers import Worker
from tilewright.measure.cluster.driver.tasks import Assignment
from tilewright.measure.cluster.host_services import fits
from tilewright.measure.cluster.status import JobStatus, Tally, WorkerStatus
from tilewright.measure.cluster.wire import (
    Stored,
    build_request,
    builds_of,
    read_build_answer,
    read_run_answer,
    run_request,
)
from tilewright.measure.records.fields import prose
from tilewright.measure.records.jsonl import parse_json
from tilewright.measure.records.measurement import Candidate, Job, Measurement, Result
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

REST_SECONDS = 2.0
"""Says how long a worker rests that could not begin with a task, or has become slow."""
DRIFT_SECONDS = 30.0
"""The longest rest of a worker that stays slower than its peers."""

Event = dict[str, Any]


class LostClusterError(InputError):
    """The cluster, or the way to it, is gone. What was measured is recorded."""


class Dispatcher:
    """The jobs of one driver and the workers of its cluster, for what it ``needs``."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self.fleet, self._backlog = Fleet(needs), Backlog()
        self._drift, self._tally = Drift(), Tally()
        self._dismissed: list[str] = []
        self._accepted: set[str] = set()
        self._takes: dict[str, Callable[[Event, float], list[Result]]] = {
            "refused": self._refused,
            "lost": self._lost,
            "nodes": self._nodes,
            "facts": self._facts,
            "hello": self._hello,
            "built": self._built,
            "ran": self._ran,
            "failed": self._failed,
        }

    # -- jobs ------------------------------------------------------------------------------

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates of ``job``; :class:`InputError` for a target that no worker has had."""
        self._check_served(job.target)
        self._tally.expect(job)
        self._backlog.submit(job, candidates)

    def cancel(self, job: Job) -> int:
        """Forget the candidates of a job that do not run yet; how many there were."""
        return self._backlog.cancel(job)

    def drop(self, job: Job) -> None:
        """Forget a job."""
        self._backlog.drop(job)
        self._tally.forget(job)

    def targets(self) -> list[Target]:
        """Return the devices of the workers, each once; CPUs with as many threads as are needed."""
        offered = {}
        for target in self.devices():
            if isinstance(target, CpuTarget):
                target = replace(target, threads=min(self._needs.threads, target.cores))
            offered[target.fingerprint] = target
        return list(offered.values())

    def devices(self) -> list[Target]:
        """Return the device of each run worker that ever began."""
        return [m.target for m in self.fleet.members() if m.target is not None]

    # -- events and commands ---------------------------------------------------------------

    def take(self, event: Event, now: float) -> list[Result]:
        """Take note of an event: what is known by it. :class:`LostClusterError` if that is the
        cluster's end, :class:`InputError` if there was none to begin with."""
        take = self._takes.get(event["event"])
        results = [] if take is None else take(event, now)
        self._tally.note(results, now)
        return results

    def commands(self, now: float) -> Iterator[dict[str, Any]]:
        """Yield the commands that are due now."""
        yield from ({"do": "stop", "worker": worker} for worker in self._dismissed)
        self._dismissed = []
        yield from self.fleet.due(now)
        for task in self._backlog.assign(now):
            yield self._given(task)
        useless = self._backlog.useless()
        if useless:
            yield {"do": "free", "builds": useless}

    def overdue(self, now: float) -> list[Result]:
        """Part with workers that should have answered long ago; what is final by that."""
        late = self._backlog.overdue(now)
        return [r for id in late for r in self._dismiss(id, "it did not answer in time", now)]

    # -- what is going on ------------------------------------------------------------------

    def rate(self, now: float) -> float:
        """Candidates a second, lately."""
        return self._tally.rate(now)

    def lacking(self, target: Target) -> str:
        """Say which workers ``target`` has lost, and why; empty while it has enough."""
        return lacking(target, self._backlog)

    def jobs(self) -> tuple[JobStatus, ...]:
        """List the progress of each job."""
        jobs = self._tally.jobs.values()
        return tuple(job_status(job, self._backlog, self._tally) for job in jobs)

    def workers(self, now: float) -> tuple[WorkerStatus, ...]:
        """List the state of each worker."""
        tasks = {task.worker.id: task for task in self._backlog.tasks()}
        return tuple(
            worker_status(member, tasks.get(member.id), self._backlog.rests(member.id, now))
            for member in self.fleet.members()
        )

    # -- parts -----------------------------------------------------------------------------

    def _check_served(self, target: Target) -> None:
        if target.fingerprint in self._accepted:
            return
        if not any(fits(device, target) for device in self.devices()):
            offered = "; ".join(target.summary for target in self.targets())
            unknown = f"no worker has the target {target.summary}; they have: {offered}"
            raise InputError(self.lacking(target) or unknown)
        self._accepted.add(target.fingerprint)

    def _given(self, task: Assignment) -> dict[str, Any]:
        about = {"worker": task.worker.id, "task": task.number}
        if task.builds:
            candidates = [b.candidate for b in task.attempt.built]
            return {"do": "build", "text": build_request(task.job, candidates), **about}
        built = [b for b in task.attempt.built if isinstance(b, Stored)]
        text = run_request(task.job, built)
        return {"do": "run", "text": text, "builds": builds_of(built), **about}

    def _refused(self, event: Event, now: float) -> list[Result]:
        raise InputError(event["why"])

    def _lost(self, event: Event, now: float) -> list[Result]:
        raise LostClusterError(f"the Ray cluster is lost: {prose(event['why'])}")

    def _nodes(self, event: Event, now: float) -> list[Result]:
        gone = self.fleet.see([Node(**node) for node in event["nodes"]])
        for worker in gone:
            self._drift.forget(worker)
        why = "its node is gone"
        return [result for id in gone for result in self._backlog.leave(id, why, now)]

    def _facts(self, event: Event, now: float) -> list[Result]:
        try:
            self.fleet.learn(event["node"], event["text"])
        except InputError as error:
            self.fleet.fail(event["node"], prose(str(error)), now)
        return []

    def _hello(self, event: Event, now: float) -> list[Result]:
        try:
            member = self.fleet.greet(event["worker"], event["text"])
        except InputError as error:
            return self._dismiss(event["worker"], prose(str(error)), now)
        if member is not None:
            self._backlog.join(Worker(member.id, member.plan.role, _served_by(member)))
        return []

    def _built(self, event: Event, now: float) -> list[Result]:
        task = self._backlog.task(event["task"])
        if task is None:
            return []
        candidates = [b.candidate for b in task.attempt.built]
        try:
            outcomes = read_build_answer(event["text"], task.number, task.job, candidates)
        except InputError as error:
            return self._dismiss(task.worker.id, f"it answered nonsense: {error}", now)
        self.fleet.credit(task.worker.id, len(candidates))
        return self._backlog.built(task.number, outcomes)

    def _ran(self, event: Event, now: float) -> list[Result]:
        task = self._backlog.task(event["task"])
        if task is None:
            return []
        try:
            answer = parse_json(event["text"])
            if isinstance(answer, dict) and "missing" in answer:
                why = f"binaries are lost: {prose(str(answer['missing']))}"
                return self._backlog.missing(task.number, why, now)
            measurements = read_run_answer(event["text"], task.job, task.attempt.built)
        except InputError as error:
            return self._dismiss(task.worker.id, f"it answered nonsense: {error}", now)
        self.fleet.credit(task.worker.id, len(measurements))
        return self._measured(task, measurements, now)

    def _measured(
        self, task: Assignment, measurements: Sequence[Measurement], now: float
    ) -> list[Result]:
        """Return the final results of a piece that was run.

        Measurements of a worker that was slower than its peers get a note of that. A worker that
        stays slow rests, each time longer, as long as a peer is at work, and the peer measures the
        piece again.
        """
        references = [seconds for m in measurements for seconds in m.reference_samples]
        slow = self._drift.note(task.worker.id, self._group(task, measurements[0]), references)
        if slow is None:
            return self._backlog.ran(task.number, measurements)
        if slow.lasting and self._has_peer_at_work(task, now):
            why = f"its reference kernel takes {slow.times:.2f} times as long as its peers' does"
            self.fleet.remark(task.worker.id, why)
            rest = min(DRIFT_SECONDS, REST_SECONDS * 2.0 ** (slow.lasting - 1))
            self._backlog.rest(task.worker.id, now + rest)
            if not task.attempt.moved:
                self._backlog.put_back(task.number)
                return []
        noted = {"drift": round(slow.times, 3)}
        noting = [replace(m, info={**m.info, **noted}) for m in measurements]
        return self._backlog.ran(task.number, noting)

    def _group(self, task: Assignment, measured: Measurement) -> str:
        """Name the group whose reference times compare with those of a piece."""
        member = self.fleet.member(task.worker.id)
        device = member.target.fingerprint if member and member.target else ""
        return f"{device} {task.job.workload.digest} {measured.clock}"

    def _has_peer_at_work(self, task: Assignment, now: float) -> bool:
        serving = self._backlog.serving(task.job.target)
        return any(w != task.worker and not self._backlog.rests(w.id, now) for w in serving)

    def _failed(self, event: Event, now: float) -> list[Result]:
        """Note that a node or a worker did not answer, or that its task is lost."""
        why = prose(event["why"])
        if event["do"] == "scout":
            self.fleet.fail(event["node"], why, now)
            return []
        if event["do"] == "start" or event["died"]:
            return self._dismiss(event["worker"], why, now)
        self.fleet.remark(event["worker"], why)
        self._backlog.rest(event["worker"], now + REST_SECONDS)
        return self._backlog.refused(event["task"], why, now)

    def _dismiss(self, worker: str, why: str, now: float) -> list[Result]:
        """Part with a worker, who died or might as well: another takes its place."""
        self._dismissed.append(worker)
        self._drift.forget(worker)
        self.fleet.fail(worker, why, now)
        return self._backlog.leave(worker, why, now)


def _served_by(member: FleetWorker) -> Callable[[Target], bool]:
    """Say for which targets a worker is; asked often, so each answer is kept."""
    known: dict[str, bool] = {}

    def serves(target: Target) -> bool:
        if target.fingerprint not in known:
            if member.plan.role == "build":
                able = member.facts is not None and member.facts.builds(target)
            else:
                able = member.target is not None and fits(member.target, target)
            known[target.fingerprint] = able
        return known[target.fingerprint]

    return serves

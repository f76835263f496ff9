"""The executor on Ray: what the workers of a cluster are given, and what becomes of it.

Policy lives here and in the pure :mod:`backlog <measure.cluster.backlog>` and
:mod:`fleet <measure.cluster.fleet>`; a process of its own speaks with Ray
(:mod:`measure.cluster.courier`). When the cluster is lost, :meth:`RayExecutor.results` says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from measure.cluster.backlog import Backlog, Task, Worker
from measure.cluster.fleet import Fleet, Member
from measure.cluster.link import Link
from measure.cluster.outfit import HOST, fits
from measure.cluster.plan import Needs, Node
from measure.cluster.wire import (
    Stored,
    build_request,
    builds_of,
    read_build_answer,
    read_run_answer,
    run_request,
)
from measure.executor import RUN_TOGETHER
from measure.fields import prose
from measure.jsonl import parse_json
from measure.measurement import Candidate, Job, Result
from measure.outcomes import Outcomes
from spaces.cpu.target import CpuTarget
from spaces.errors import InputError
from spaces.target import Target

START_SECONDS = 120.0  # for the first workers to begin
REST_SECONDS = 2.0  # of a worker that could not begin with a task

Event = dict[str, Any]


class LostClusterError(InputError):
    """The cluster, or the way to it, is gone. What was measured is recorded."""


class RayExecutor:
    """Builds and runs candidates on the workers of a Ray cluster.

    ``address`` is that of the cluster's head (``host:port``, ``ray://host:port``, or ``auto`` for
    one that runs on this machine); None starts a cluster of this machine, which ends with the
    executor. A cluster that asks nobody for a token is refused unless ``insecure``. ``needs`` says
    on what to measure: by default on CPUs, with one thread. Workers take what they measure with
    from ``outfit``; ``code`` are further files of Python that it needs.

    Waits for the first workers. :class:`InputError` if there is no such cluster, or nothing to
    measure on. Thread-safe.
    """

    def __init__(
        self,
        address: str | None = None,
        needs: Needs | None = None,
        insecure: bool = False,
        outfit: str = HOST,
        code: Sequence[str] = (),
    ) -> None:
        self._needs = needs or Needs()
        self._outcomes = Outcomes()
        self._fleet, self._backlog = (
            Fleet(self._needs),
            Backlog(),
        )  # guarded by what guards outcomes
        self._accepted: set[str] = set()
        self._takes: dict[str, Callable[[Event], None]] = {
            "refused": self._refused,
            "lost": self._lost,
            "nodes": self._nodes,
            "facts": self._facts,
            "hello": self._hello,
            "built": self._built,
            "ran": self._ran,
            "failed": self._failed,
        }
        self._link = Link(
            address=address, insecure=insecure, outfit=outfit, code=list(map(str, code))
        )
        self._listener = threading.Thread(target=self._listen, name="cluster", daemon=True)
        self._listener.start()
        try:
            self._await_workers()
        except BaseException:
            self.close()
            raise

    @property
    def batch(self) -> int:
        """As many candidates as all run workers run at a time."""
        return RUN_TOGETHER * max(1, len(self._running()))

    def targets(self) -> list[Target]:
        """What this can measure on: the devices of its workers, each once."""
        offered = {}
        for member in self._running():
            target = member.target
            if isinstance(target, CpuTarget):
                target = replace(target, threads=min(self._needs.threads, target.cores))
            if target is not None:
                offered[target.fingerprint] = target
        return list(offered.values())

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates of ``job``; those of a final comparison run together."""
        if any(candidate.job.id != job.id for candidate in candidates):
            raise ValueError("candidates of several jobs in one batch")
        with self._outcomes.changed:
            self._check_served(job.target)
            self._outcomes.expect(job, len(candidates))
            self._backlog.submit(job, candidates)
            self._act()

    def results(self, timeout: float | None = None, job: Job | None = None) -> list[Result]:
        """What has become known since the last call, of one job or of all.

        Waits for at least one result, at most ``timeout`` seconds; empty when nothing is pending
        or time is up. Raises :class:`LostClusterError` once the cluster is.
        """
        try:
            return self._outcomes.take(timeout, job)
        except LostClusterError:
            self.close()
            raise

    def pending(self, job: Job | None = None) -> int:
        """Candidates, of one job or of all, whose results were not returned yet."""
        return self._outcomes.pending(job)

    def cancel(self, job: Job) -> None:
        """Drop the candidates of ``job`` that do not run yet: they are pending no more, and give
        no result. Those that run still do."""
        with self._outcomes.changed:
            self._outcomes.cancel(job, self._backlog.cancel(job))
            self._act()

    def drop(self, job: Job) -> None:
        """Nobody asks for ``job`` any more: cancelled, what runs of it gives no result either."""
        with self._outcomes.changed:
            self._backlog.drop(job)
            self._outcomes.drop(job)
            self._act()

    def close(self) -> None:
        """Leave the cluster, and end it if it is this executor's own. Idempotent."""
        self._outcomes.close()
        self._link.close()
        if threading.current_thread() is not self._listener:
            self._listener.join()

    # -- the start -------------------------------------------------------------------------

    def _await_workers(self) -> None:
        with self._outcomes.changed:
            self._outcomes.changed.wait_for(self._has_started, START_SECONDS)
            self._outcomes.take(0.0, None)  # raises what went wrong
            if not self._running():
                why = "; ".join(self._fleet.reasons()) or "all devices are taken"
                kinds = ", ".join(self._needs.kinds)
                raise InputError(f"no worker of the cluster measures on {kinds}: {why}")

    def _has_started(self) -> bool:
        return self._outcomes.failed or self._fleet.settled

    def _running(self) -> list[Member]:
        with self._outcomes.changed:
            members = self._fleet.members()
            return [m for m in members if m.plan.role == "run" and m.target is not None]

    def _check_served(self, target: Target) -> None:
        """:class:`InputError` for a target that no worker has had yet."""
        if target.fingerprint in self._accepted:
            return
        if not any(fits(m.target, target) for m in self._running() if m.target is not None):
            offered = "; ".join(target.summary for target in self.targets())
            raise InputError(f"no worker has the target {target.summary}; they have: {offered}")
        self._accepted.add(target.fingerprint)

    # -- events ----------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            for event in self._link.events():
                self._take(event)
            words = self._link.last_words() or "the connection ended"
            raise LostClusterError(f"the Ray cluster is lost: {words:.300}")
        except Exception as error:
            self._outcomes.fail(error)

    def _take(self, event: Event) -> None:
        with self._outcomes.changed:
            take = self._takes.get(event["event"])
            if take is not None:
                take(event)
            self._act()
            self._outcomes.changed.notify_all()

    def _act(self) -> None:
        """Send what is to be done now."""
        if self._outcomes.closed:
            return
        now = time.time()
        for worker in self._backlog.overdue(now):
            self._dismiss(worker, "it did not answer in time")
        for command in self._fleet.due(now):
            self._link.send(**command)
        for task in self._backlog.assign(now):
            self._give(task)
        useless = self._backlog.useless()
        if useless:
            self._link.send(do="free", builds=useless)

    def _give(self, task: Task) -> None:
        about = {"worker": task.worker.id, "task": task.number}
        built = [b for b in task.attempt.built if isinstance(b, Stored)]
        if task.builds:
            text = build_request(task.job, [b.candidate for b in task.attempt.built])
            self._link.send(do="build", text=text, **about)
        else:
            text = run_request(task.job, built)
            self._link.send(do="run", text=text, builds=builds_of(built), **about)

    def _refused(self, event: Event) -> None:
        self._outcomes.fail(InputError(event["why"]))

    def _lost(self, event: Event) -> None:
        self._outcomes.fail(LostClusterError(f"the Ray cluster is lost: {event['why']}"))

    def _nodes(self, event: Event) -> None:
        nodes = [Node(**node) for node in event["nodes"]]
        for worker in self._fleet.see(nodes):
            self._outcomes.add(self._backlog.leave(worker, "its node is gone", time.time()))

    def _facts(self, event: Event) -> None:
        try:
            self._fleet.learn(event["node"], event["text"])
        except InputError as error:
            self._fleet.fail(event["node"], prose(str(error)), time.time())

    def _hello(self, event: Event) -> None:
        try:
            member = self._fleet.greet(event["worker"], event["text"])
        except InputError as error:
            self._fleet.fail(event["worker"], prose(str(error)), time.time())
            return
        if member is not None:
            self._backlog.join(Worker(member.id, member.plan.role, _served_by(member)))

    def _built(self, event: Event) -> None:
        task = self._backlog.task(event["task"])
        if task is None:
            return
        candidates = [b.candidate for b in task.attempt.built]
        try:
            outcomes = read_build_answer(event["text"], task.number, task.job, candidates)
        except InputError as error:
            self._dismiss(task.worker.id, f"it answered nonsense: {error}")
            return
        self._outcomes.add(self._backlog.built(task.number, outcomes))

    def _ran(self, event: Event) -> None:
        task = self._backlog.task(event["task"])
        if task is None:
            return
        try:
            answer = parse_json(event["text"])
            if isinstance(answer, dict) and "missing" in answer:
                why = f"binaries are lost: {prose(str(answer['missing']))}"
                self._outcomes.add(self._backlog.missing(task.number, why, time.time()))
                return
            measurements = read_run_answer(event["text"], task.job, task.attempt.built)
        except InputError as error:
            self._dismiss(task.worker.id, f"it answered nonsense: {error}")
            return
        self._outcomes.add(self._backlog.ran(task.number, measurements))

    def _failed(self, event: Event) -> None:
        """Somebody who was asked could not answer: whoever it is, or the task that it had."""
        now, why = time.time(), prose(event["why"])
        if event["do"] == "scout":
            self._fleet.fail(event["node"], why, now)
        elif event["do"] == "start" or event["died"]:
            self._dismiss(event["worker"], why)
        else:
            self._backlog.rest(event["worker"], now + REST_SECONDS)
            self._outcomes.add(self._backlog.refused(event["task"], why, now))

    def _dismiss(self, worker: str, why: str) -> None:
        """Part with a worker, who died or might as well: another takes its place."""
        now = time.time()
        self._link.send(do="stop", worker=worker)
        self._fleet.fail(worker, why, now)
        self._outcomes.add(self._backlog.leave(worker, f"its worker was lost: {why}", now))


def _served_by(member: Member) -> Callable[[Target], bool]:
    """For which targets a worker is; asked often, so each answer is kept."""
    known: dict[str, bool] = {}

    def serves(target: Target) -> bool:
        if target.fingerprint not in known:
            if member.plan.role == "build":
                known[target.fingerprint] = member.facts is not None and member.facts.builds(target)
            else:
                known[target.fingerprint] = member.target is not None and fits(
                    member.target, target
                )
        return known[target.fingerprint]

    return serves

"""The executor on Ray.

It joins two parts. The pure :mod:`dispatcher <measure.cluster.driver.dispatcher>` decides. A
process of its own speaks with Ray (:mod:`measure.cluster.transport.relay`).
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

from tilewright.measure.cluster.driver.dispatcher import Dispatcher, LostClusterError
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.cluster.host_services import HOST
from tilewright.measure.cluster.status import DriverStatus
from tilewright.measure.cluster.transport.link import Link
from tilewright.measure.drawing.draw import check_sensitivity
from tilewright.measure.executor import RUN_TOGETHER
from tilewright.measure.outcomes import Outcomes
from tilewright.measure.records.measurement import Candidate, Job, Result
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

START_SECONDS = 120.0  # time the first workers have to begin
_NONE_BEGAN = f"none began in {START_SECONDS:g} s; others have all devices, or the cluster is busy"
PUBLISH_SECONDS = 2.0  # interval at which a driver publishes its status

_numbers = count(1)  # tell executors of one process apart


class RayExecutor:
    """Builds and runs candidates on the workers of a Ray cluster.

    ``address`` is that of the cluster's head (``host:port``, ``ray://host:port``, or ``auto`` for
    one that runs on this machine); None starts a cluster of this machine, which ends with the
    executor. A cluster that asks nobody for a token is refused unless ``insecure``. ``needs`` says
    on what to measure: by default on CPUs, with one thread. Workers take what they measure with
    from ``host_services``; ``code`` are further files of Python that it needs.

    A batch is built elsewhere than it is run, so one is built and one begun while a third runs.
    Waits for the first workers. :class:`InputError` if there is no such cluster, or nothing to
    measure on. Thread-safe.
    """

    ahead = 2

    def __init__(
        self,
        address: str | None = None,
        needs: Needs | None = None,
        insecure: bool = False,
        host_services: str = HOST,
        code: Sequence[str] = (),
    ) -> None:
        self._outcomes = Outcomes()
        self._kinds = (needs or Needs()).kinds
        self._dispatcher = Dispatcher(needs or Needs())  # guarded by what guards outcomes
        self._name = f"{platform.node()}:{os.getpid()}:{next(_numbers)}"
        self._epoch = time.time() - time.monotonic()
        self._published = 0.0
        self.address = ""
        self._link = Link(
            address=address,
            insecure=insecure,
            host_services=host_services,
            code=list(map(str, code)),
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
        """The number of candidates that all run workers run at a time."""
        return RUN_TOGETHER * self.devices

    @property
    def devices(self) -> int:
        """The number of its run workers."""
        with self._outcomes.changed:
            return max(1, len(self._dispatcher.devices()))

    def targets(self) -> list[Target]:
        """List the targets that its workers can measure on, each once."""
        with self._outcomes.changed:
            return self._dispatcher.targets()

    def status(self) -> DriverStatus:
        """Report the state of this driver, its jobs and its workers."""
        now = self._now()
        with self._outcomes.changed:
            known = self._dispatcher
            rate, workers = known.rate(now), known.workers(now)
            return DriverStatus(self._name, time.time(), rate, known.jobs(), workers)

    def lacking(self, target: Target) -> str:
        """Say which workers ``target`` has lost, and why; empty while it has enough."""
        with self._outcomes.changed:
            return self._dispatcher.lacking(target)

    def submit(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Queue candidates of ``job``; those of a final comparison run together. An
        :class:`InputError` if no kernel of its workload can be verified."""
        if any(candidate.job.id != job.id for candidate in candidates):
            raise ValueError("candidates of several jobs in one batch")
        check_sensitivity(job.workload)
        with self._outcomes.changed:
            self._outcomes.expect(job, 0)  # it is not closed
            self._dispatcher.submit(job, candidates)
            self._outcomes.expect(job, len(candidates))
            self._act()

    def results(self, timeout: float | None = None, *jobs: Job) -> list[Result]:
        """Return the results of these jobs since the last call; of all jobs if none is named.

        Waits for at least one result, at most ``timeout`` seconds. The list is empty when nothing
        is pending or time is up. Raises :class:`LostClusterError` once the cluster is lost.
        """
        try:
            return self._outcomes.take(timeout, *jobs)
        except Exception:
            self.close()
            raise

    def pending(self, job: Job | None = None) -> int:
        """Return the candidates, of one job or of all, whose results were not returned yet."""
        return self._outcomes.pending(job)

    def cancel(self, job: Job) -> None:
        """Drop the candidates of ``job`` that do not run yet: they are pending no more, and give
        no result. Those that run still do."""
        with self._outcomes.changed:
            self._outcomes.cancel(job, self._dispatcher.cancel(job))
            self._act()

    def drop(self, job: Job) -> None:
        """Forget ``job``: cancel what waits, and ignore the results of what runs."""
        with self._outcomes.changed:
            self._dispatcher.drop(job)
            self._outcomes.drop(job)
            self._act()

    def close(self) -> None:
        """Leave the cluster, and end it if it is this executor's own. Idempotent."""
        self._outcomes.close()
        self._link.send(do="publish", key=self._name, text="")
        self._link.close()
        if threading.current_thread() is not self._listener:
            self._listener.join()

    # -- the start -------------------------------------------------------------------------

    def _await_workers(self) -> None:
        with self._outcomes.changed:
            self._outcomes.changed.wait_for(self._has_started, START_SECONDS)
            self._outcomes.take(0.0)  # raises what went wrong
            if not self._dispatcher.devices():
                kinds = ", ".join(self._kinds)
                why = self._why_none()
                raise InputError(f"no worker of the cluster measures on {kinds}: {why}")

    def _why_none(self) -> str:
        fleet = self._dispatcher.fleet
        there_are = f"its nodes have {fleet.hardware()}" if fleet.settled else _NONE_BEGAN
        return "; ".join(fleet.reasons()) or there_are

    def _has_started(self) -> bool:
        return self._outcomes.failed or self._dispatcher.fleet.settled

    # -- the thread ------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            for event in self._link.events():
                self._take(event)
            words = self._link.last_words() or "the connection ended"
            raise LostClusterError(f"the Ray cluster is lost: {words:.300}")
        except Exception as error:
            self._outcomes.fail(error)

    def _take(self, event: dict[str, Any]) -> None:
        now = self._now()
        with self._outcomes.changed:
            self.address = event.get("address", self.address)
            self._outcomes.add(self._dispatcher.take(event, now))
            self._outcomes.add(self._dispatcher.overdue(now))
            self._act()
        if event["event"] == "pulse" and now - self._published >= PUBLISH_SECONDS:
            self._published = now
            self._link.send(do="publish", key=self._name, text=self.status().to_text())

    def _act(self) -> None:
        """Send what is to be done now."""
        if not self._outcomes.closed:
            for command in self._dispatcher.commands(self._now()):
                self._link.send(**command)

    def _now(self) -> float:
        """Unix time by a clock that nobody sets meanwhile: who is late is told by it."""
        return self._epoch + time.monotonic()

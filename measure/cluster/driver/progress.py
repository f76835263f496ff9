"""The progress of a driver's jobs and the state of its workers, for reports of its status."""

from __future__ import annotations

from tilewright.measure.cluster.driver.backlog import Backlog
from tilewright.measure.cluster.driver.fleet import FleetWorker
from tilewright.measure.cluster.driver.tasks import Assignment
from tilewright.measure.cluster.status import JobStatus, Tally, WorkerStatus
from tilewright.measure.records.measurement import Job
from tilewright.spaces.target import Target

REASONS = 3
"""The number of reasons of ended workers that are reported, the most frequent first."""

_DOES = {"run": "measures on", "build": "builds for"}


def job_status(job: Job, backlog: Backlog, tally: Tally) -> JobStatus:
    """Report how much of a job waits, is at work and is done."""
    of_job = [task for task in backlog.tasks() if task.job.id == job.id]
    return JobStatus(
        id=job.id,
        workload=str(job.workload),
        target=job.target.summary,
        waiting=backlog.waiting(job.id),
        building=sum(len(task.attempt.built) for task in of_job if task.builds),
        running=sum(len(task.attempt.built) for task in of_job if not task.builds),
        done=tally.done(job.id),
        failures=tally.failures(job.id),
    )


def worker_status(member: FleetWorker, task: Assignment | None, rests: bool) -> WorkerStatus:
    """Describe the state of a worker and the job of its task, if it has one."""
    state = "resting" if rests else "busy" if task else "idle"
    if not member.ready:
        state = "failed" if member.failures else "starting"
    return WorkerStatus(
        role=member.plan.role,
        host=member.host,
        device=member.device,
        state=state,
        job=task.job.id if task else "",
        done=member.done,
        why=member.why,
    )


def lacking(target: Target, backlog: Backlog) -> str:
    """Say which workers ``target`` has lost, how many, and why; empty while it has enough."""
    for role, does in _DOES.items():
        ended = backlog.ended(target, role)
        if ended and not backlog.serving(target, role):
            count, told = ended.total(), ended.most_common(REASONS)
            gone = "the only one ended" if count == 1 else f"all {count} ended"
            ends = "; ".join(_often(why.rstrip("."), times) for why, times in told)
            return f"no worker is alive that {does} {target.summary}; {gone}: {ends}"
    return ""


def _often(what: str, times: int) -> str:
    return what if times == 1 else f"{what} ({times} times)"

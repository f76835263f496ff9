"""What is lost with a worker, and what a worker that does not answer or that kills is given."""

from __future__ import annotations

from dataclasses import replace

from tests.measure.cluster.driver.made_up_work import (
    backlog,
    candidates,
    drain,
    finish,
    job,
    worker,
)
from tilewright.measure.cluster.driver.backlog import LOSSES_ALONE, TASK_SECONDS, Backlog
from tilewright.measure.executor import RUN_TOGETHER
from tilewright.measure.records.measurement import ErrorKind, Result, Status
from tilewright.measure.timing import call_limit
from tilewright.spaces.operators import workload


def lose(made: Backlog, of: str, times: int) -> list[Result]:
    """Workers die of one candidate, again and again, all others are measured."""
    known: list[Result] = []
    for life in range(times):
        made.join(worker(f"run-{life}"))
        tasks = made.assign(0.0)
        while tasks:
            for task in tasks:
                named = [b.candidate.schedule["name"] for b in task.attempt.built]
                if not task.builds and of in named:
                    known += made.leave(task.worker.id, "killed", 0.0)
                else:
                    finish(made, task, known)
            tasks = made.assign(0.0)
    return known


def test_a_candidate_that_kills_workers_again_and_again_ends():
    made = backlog(worker("build", "build"))
    made.submit(job(), candidates(job(), RUN_TOGETHER))
    known = lose(made, "one5", 20)
    assert len(known) == RUN_TOGETHER
    [culprit] = [r.measurement for r in known if not r.measurement.ok]
    assert culprit.schedule["name"] == "one5"
    assert (culprit.status, culprit.error_kind) == (Status.ERROR, ErrorKind.WORKER_LOST)
    assert culprit.error_text == "its worker was lost: killed"


def test_workers_that_die_of_something_else_cost_no_candidate():
    made = backlog(worker("build", "build"))
    made.submit(job(), candidates(job(), RUN_TOGETHER))
    known = lose(made, "one5", LOSSES_ALONE)
    made.join(worker("healthy"))
    drain(made, known)
    assert len(known) == RUN_TOGETHER
    assert all(r.measurement.ok for r in known)


def test_what_is_lost_with_its_binaries_is_built_again():
    made = backlog()
    made.submit(job(), candidates(job(), 3))
    known: list[Result] = []
    [task] = made.assign(0.0)
    finish(made, task, known)
    [task] = made.assign(0.0)
    made.missing(task.number, "gone", 0.0)
    [again] = made.assign(0.0)
    assert again.builds
    drain(made, known)
    assert sorted(r.measurement.schedule["name"] for r in known) == ["one0", "one1", "one2"]


def test_a_worker_at_rest_gets_nothing():
    made = backlog(worker("build", "build"))
    made.submit(job(), candidates(job(), 1))
    made.rest("build", until=10.0)
    assert made.assign(9.0) == []
    assert made.assign(10.0)


def test_a_worker_that_does_not_answer_is_overdue():
    made = backlog(worker("build", "build"))
    made.submit(job(), candidates(job(), 1))
    [task] = made.assign(0.0)
    assert made.overdue(TASK_SECONDS - 1) == []
    assert made.overdue(task.overdue_at) == ["build"]


def test_a_worker_has_time_for_the_longest_calls_also_of_what_only_moves():
    moving = replace(job(), workload=workload("y[i, j] = x[j, i]", i=100_000, j=100_000))
    made = backlog()
    made.submit(moving, candidates(moving, 1))
    [task] = made.assign(0.0)
    hung = 2 * call_limit(moving.workload.work, None)  # when it is verified
    assert task.overdue_at > TASK_SECONDS + hung

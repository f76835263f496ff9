"""The work of a cluster, whatever happens to its workers: each candidate ends once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.measure.cluster.driver.made_up_work import (
    OTHER,
    TARGETS,
    backlog,
    candidates,
    drain,
    finish,
    job,
    outcomes,
    verdicts,
    worker,
)
from tests.measure.cluster.simulated import TARGET
from tilewright.measure.cluster.driver.backlog import PIECES_AHEAD, Backlog
from tilewright.measure.cluster.driver.ready_workers import Worker
from tilewright.measure.executor import RUN_TOGETHER
from tilewright.measure.records.measurement import ErrorKind, Result, Status


class Cluster(RuleBasedStateMachine):
    """Two jobs on one target and one on another; workers come, go, fail, and answer twice."""

    def __init__(self):
        super().__init__()
        self.backlog = Backlog()
        self.workers: dict[str, Worker] = {}
        self.lives = 0
        self.known: list[Result] = []
        self.expected: Counter[str] = Counter()
        self.submitted: dict[str, list] = {}
        self.finished = []  # tasks that were answered

    def owed(self, id):
        return sum(r.candidate.job.id == id for r in self.known)

    @rule(
        id=st.sampled_from(["one", "two", "three"]), count=st.integers(0, 40), final=st.booleans()
    )
    def submit(self, id, count, final):
        self.lives += 1
        of = job(id, OTHER if id == "three" else TARGET, final=final)
        made = candidates(of, count, f"-{self.lives}-")
        self.backlog.submit(of, made)
        self.expected[id] += count

    @rule(role=st.sampled_from(["run", "build"]), where=st.sampled_from(sorted(TARGETS)))
    def join(self, role, where):
        self.lives += 1
        made = worker(f"{role}{self.lives}", role, TARGETS[where])
        self.workers[made.id] = made
        self.backlog.join(made)

    @rule()
    def assign(self):
        self.backlog.assign(0.0)

    @precondition(lambda self: self.backlog.tasks())
    @rule(data=st.data())
    def answer(self, data):
        task = data.draw(st.sampled_from(self.backlog.tasks()))
        self.finished.append(task)
        if task.builds:
            found = [
                outcome if data.draw(st.integers(0, 5)) else failure
                for outcome, failure in zip(
                    outcomes(task),
                    verdicts(task, Status.ERROR, ErrorKind.COMPILE),
                    strict=True,
                )
            ]
            self.known += self.backlog.built(task.number, found)
        else:
            kinds = [None, None, ErrorKind.WORKER_LOST, ErrorKind.DEVICE]
            kind = data.draw(st.sampled_from(kinds))
            status = Status.LOST if kind else Status.OK
            self.known += self.backlog.ran(task.number, verdicts(task, status, kind))

    @precondition(lambda self: self.finished)
    @rule(data=st.data())
    def answer_late(self, data):
        before = len(self.known)
        finish(self.backlog, data.draw(st.sampled_from(self.finished)), self.known)
        assert len(self.known) == before

    @precondition(lambda self: self.backlog.tasks())
    @rule(data=st.data(), how=st.sampled_from(["leave", "refused", "missing", "put_back"]))
    def fail(self, data, how):
        task = data.draw(st.sampled_from(self.backlog.tasks()))
        self.finished.append(task)
        if how == "leave":
            self.workers.pop(task.worker.id, None)
            self.known += self.backlog.leave(task.worker.id, "killed", 0.0)
        elif how == "put_back":
            self.backlog.put_back(task.number)
        elif how == "refused" or not task.builds:
            self.known += getattr(self.backlog, how)(task.number, "no", 0.0)

    @rule(id=st.sampled_from(["one", "two", "three"]))
    def cancel(self, id):
        self.expected[id] -= self.backlog.cancel(job(id, OTHER if id == "three" else TARGET))

    @rule(id=st.sampled_from(["one", "two", "three"]))
    def drop(self, id):
        self.backlog.drop(job(id, OTHER if id == "three" else TARGET))
        self.expected[id] = self.owed(id)

    @invariant()
    def each_worker_has_one_task_that_is_for_it(self):
        tasks = self.backlog.tasks()
        assert len({task.worker.id for task in tasks}) == len(tasks)
        assert all(task.worker.serves(task.job.target) for task in tasks)
        assert all(len({b.candidate.job.id for b in t.attempt.built}) == 1 for t in tasks)

    def teardown(self):
        for target in TARGETS.values():
            for role in ("run", "build"):
                self.lives += 1
                self.backlog.join(worker(f"last{self.lives}", role, target))
        drain(self.backlog, self.known)
        names = Counter(str(r.measurement.schedule) for r in self.known)
        assert not names or max(names.values()) == 1
        for id in ("one", "two", "three"):
            assert self.owed(id) == self.expected[id]
            assert self.backlog.waiting(id) == 0


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_binaries_are_freed_once_when_all_of_them_were_run():
    made = backlog()
    made.submit(job(), candidates(job(), 40))
    freed = []
    known: list[Result] = []
    builds = []
    while tasks := made.assign(0.0):
        for task in tasks:
            builds += [task.number] if task.builds else []
            finish(made, task, known)
        freed += made.useless()
    assert sorted(freed) == sorted(builds)
    assert len(known) == 40


def test_a_piece_without_binaries_is_freed_at_once():
    made = backlog()
    made.submit(job(), candidates(job(), 3))
    [task] = made.assign(0.0)
    made.built(task.number, verdicts(task, Status.ERROR, ErrorKind.COMPILE))
    assert made.useless() == [task.number]


def test_little_is_built_ahead_of_those_who_run():
    made = backlog(worker("run"), *(worker(f"build{i}", "build") for i in range(9)))
    made.submit(job(), candidates(job(), 10_000))
    for _ in range(50):
        for task in made.assign(0.0):
            if task.builds:
                made.built(task.number, outcomes(task))
    [running] = made.tasks()
    ready = 10_000 - made.waiting("one") - len(running.attempt.built)
    assert ready == 0
    built = sum(len(piece.built) for piece in made._queues["one"].to_run)
    assert built <= PIECES_AHEAD * RUN_TOGETHER


def test_few_candidates_are_spread_over_those_who_run():
    running = [worker(f"run{i}") for i in range(4)]
    made = backlog(*running, *(worker(f"build{i}", "build") for i in range(4)))
    made.submit(job(), candidates(job(), 8))
    known: list[Result] = []
    for task in made.assign(0.0):
        finish(made, task, known)
    assert all(len(task.attempt.built) <= 2 for task in made.assign(0.0))
    assert {t.worker.id for t in made.tasks() if not t.builds} == {w.id for w in running}


def test_what_is_sent_together_is_cut_into_equal_pieces():
    made = backlog(worker("run0"), worker("run1"), *(worker(f"b{i}", "build") for i in range(4)))
    made.submit(job(), candidates(job(), 16))
    assert [len(task.attempt.built) for task in made.assign(0.0)] == [8, 8]


def test_a_final_comparison_stays_together():
    made = backlog(*(worker(f"run{i}") for i in range(4)), worker("build", "build"))
    made.submit(job(final=True), candidates(job(final=True), 24))
    known: list[Result] = []
    for _ in range(2):
        [task] = made.assign(0.0)
        assert len(task.attempt.built) == 24
        finish(made, task, known)
    assert len(known) == 24


def test_jobs_take_turns_however_much_one_of_them_sends():
    made = backlog(worker("run"), worker("build", "build"))
    large, small = job("large"), job("small")
    made.submit(large, candidates(large, 1000))
    made.submit(small, candidates(small, 64))
    ran: Counter[str] = Counter()
    known: list[Result] = []
    while ran["small"] < 64:
        for task in made.assign(0.0):
            if not task.builds:
                ran[task.job.id] += len(task.attempt.built)
            finish(made, task, known)
    assert ran["large"] <= 64 + 3 * RUN_TOGETHER


def test_work_goes_to_the_workers_of_its_target_only():
    made = backlog(worker("run", target=OTHER), worker("build", "build", OTHER))
    made.submit(job(), candidates(job(), 3))
    assert made.assign(0.0) == []
    made.join(worker("right build", "build"))
    [task] = made.assign(0.0)
    assert task.worker.id == "right build"


@pytest.mark.parametrize("ending", ["cancel", "drop"])
def test_what_is_cancelled_while_it_is_built_is_not_run(ending):
    made = backlog()
    made.submit(job(), candidates(job(), 20))
    [task] = made.assign(0.0)
    if ending == "cancel":
        assert made.cancel(job()) == 20
    else:
        made.drop(job())
    assert made.built(task.number, outcomes(task)) == []
    assert made.assign(0.0) == []
    assert made.useless() == [task.number]

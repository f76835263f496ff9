"""What a driver does when nodes vanish, answer late, and slow down: by events, without Ray."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.measure.cluster.made_up import Workers, nodes_event
from tests.measure.cluster.simulated import TARGET, WORK, candidate
from tilewright.measure.cluster.driver.dispatcher import DRIFT_SECONDS, REST_SECONDS, Dispatcher
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.executor import RUN_TOGETHER
from tilewright.measure.records.measurement import ErrorKind, Job
from tilewright.spaces.errors import InputError

JOB = Job("one", WORK, TARGET)


class Driver:
    """A dispatcher and its workers; commands wait until :meth:`step` answers all of them."""

    def __init__(self, *nodes: str) -> None:
        self.dispatcher, self.workers = Dispatcher(Needs()), Workers()
        self.now, self.results, self.commands = 0.0, [], []
        self.take(nodes_event(*nodes))
        for _ in range(2):  # scouts, then workers
            self.step()

    def submit(self, count: int, job: Job = JOB) -> None:
        self.dispatcher.submit(job, [candidate(f"{job.id}{i}", job) for i in range(count)])
        self.due()

    def due(self) -> None:
        self.commands += self.dispatcher.commands(self.now)

    def take(self, event) -> None:
        self.results += self.dispatcher.take(event, self.now)
        self.due()

    def step(self) -> list:
        """Answer what was commanded up to now; those commands."""
        commands, self.commands = self.commands, []
        events = list(filter(None, map(self.workers.answer, commands)))
        for event in events:
            self.take(event)
        return commands

    def drain(self) -> None:
        while self.commands:
            self.step()

    def running_on(self, node: str) -> list:
        return [c for c in self.commands if c["do"] == "run" and self.workers.node(c) == node]

    def names(self) -> Counter:
        return Counter(str(r.measurement.schedule["name"]) for r in self.results)

    def workers_at(self, node: str) -> dict:
        status = self.dispatcher.workers(self.now)
        return {worker.role: worker for worker in status if worker.host == node}


def until_it_runs(driver: Driver, node: str) -> list:
    while not (found := driver.running_on(node)):
        driver.step()
    return found


def test_what_a_node_had_when_it_was_cut_off_is_done_elsewhere_and_late_answers_count_for_nothing():
    driver = Driver("n1", "n2")
    driver.submit(64)
    out = until_it_runs(driver, "n2")
    late = [driver.workers.answer(command) for command in out]
    driver.commands = [c for c in driver.commands if c not in out]
    driver.take(nodes_event("n1"))
    driver.drain()
    for event in late:
        driver.take(event)
    driver.drain()
    assert len(driver.names()) == 64
    assert set(driver.names().values()) == {1}
    assert driver.workers_at("n2") == {}


def test_a_node_that_comes_back_gets_workers_and_work():
    driver = Driver("n1", "n2")
    driver.take(nodes_event("n1"))
    driver.take(nodes_event("n1", "n2"))
    driver.drain()
    driver.submit(64)
    driver.drain()
    assert driver.workers_at("n2")["run"].done > 0
    assert set(driver.names().values()) == {1}


def test_a_job_waits_for_a_node_where_all_are_gone():
    driver = Driver("n1")
    driver.submit(8)
    driver.take(nodes_event())
    driver.drain()
    assert driver.results == []
    driver.take(nodes_event("n2"))
    driver.drain()
    assert len(driver.names()) == 8


def rested(driver: Driver) -> None:
    """Until the run worker of n2 rests."""
    while driver.workers_at("n2")["run"].state != "resting":
        driver.step()


def test_a_worker_that_stays_slow_is_reported_and_its_work_moves_to_its_peers():
    driver = Driver("n1", "n2")
    driver.submit(640)
    while len(driver.results) < 192:
        driver.step()
    driver.workers.slow["n2"] = 1.5
    before = len(driver.results)
    rested(driver)
    why = "its reference kernel takes 1.50 times as long as its peers' does"
    assert driver.workers_at("n2")["run"].why == why
    driver.drain()
    assert len(driver.names()) == 640
    noted = {r.measurement.place.host: "drift" in r.measurement.info for r in driver.results}
    assert noted == {"n1": False, "n2": True}
    assert not any("drift" in r.measurement.info for r in driver.results[:before])


def test_a_worker_that_is_slow_for_one_piece_goes_on():
    driver = Driver("n1", "n2")
    driver.submit(320)
    while len(driver.results) < 192:
        driver.step()
    until_it_runs(driver, "n2")
    driver.workers.slow["n2"] = 1.5
    driver.step()
    driver.workers.slow.clear()
    while driver.commands:
        driver.step()
        assert driver.workers_at("n2")["run"].state != "resting"
    assert 0 < sum("drift" in r.measurement.info for r in driver.results) <= RUN_TOGETHER


def test_a_worker_that_stays_slow_rests_ever_longer():
    driver = Driver("n1", "n2")
    driver.submit(192)
    driver.drain()
    driver.workers.slow["n2"] = 1.5
    rests = []
    while len(rests) < 6:
        driver.submit(64, Job(f"more {len(rests)} {driver.now}", WORK, TARGET))
        driver.drain()
        begun = driver.now
        while driver.workers_at("n2")["run"].state == "resting":
            driver.now += 1.0
        rests += [driver.now - begun] if driver.now > begun else []
    assert rests == [2.0, 4.0, 8.0, 16.0, DRIFT_SECONDS, DRIFT_SECONDS]


def test_the_last_worker_at_work_does_not_rest():
    driver = Driver("n1", "n2")
    driver.submit(192)
    driver.drain()
    driver.workers.slow |= {"n1": 1.5, "n2": 1.5}
    driver.submit(192, Job("two", WORK, TARGET))
    while driver.commands:
        driver.step()
        states = [driver.workers_at(node)["run"].state for node in ("n1", "n2")]
        assert states.count("resting") < 2
    assert len(driver.names()) == 384


def test_a_worker_that_was_slow_is_told_no_more_once_it_is_as_fast_as_its_peers():
    driver = Driver("n1", "n2")
    driver.submit(128)
    driver.drain()
    driver.workers.slow["n2"] = 1.5
    driver.submit(64, Job("two", WORK, TARGET))
    driver.drain()
    driver.workers.slow.clear()
    driver.now += DRIFT_SECONDS
    driver.submit(128, Job("three", WORK, TARGET))
    driver.drain()
    assert driver.workers_at("n2")["run"].why == ""
    assert driver.workers_at("n2")["run"].state == "idle"
    assert any(
        r.measurement.place.host == "n2" and r.candidate.job.id == "three" for r in driver.results
    )


def test_where_only_slow_workers_are_left_their_results_say_so():
    driver = Driver("n1", "n2")
    driver.submit(128)
    driver.drain()
    driver.workers.slow |= {"n1": 2.0, "n2": 2.0}
    driver.results = []
    driver.submit(16, Job("two", WORK, TARGET, final=True))  # together
    driver.drain()
    assert [r.measurement.info["drift"] for r in driver.results] == [2.0] * 16


def test_a_worker_that_cannot_begin_rests_and_says_why():
    driver = Driver("n1")
    driver.submit(1)
    [command] = until_it_runs(driver, "n1")
    driver.commands = []
    driver.take({**command, "event": "failed", "why": "the device is gone", "died": False})
    assert driver.workers_at("n1")["run"].why == "the device is gone"
    assert driver.workers_at("n1")["run"].state == "resting"
    driver.now += REST_SECONDS
    driver.due()
    driver.drain()
    assert driver.workers_at("n1")["run"].why == ""
    assert len(driver.names()) == 1


@pytest.mark.parametrize("role", ["build", "run"])
def test_a_worker_that_answers_nonsense_is_replaced_and_its_task_done(role):
    driver = Driver("n1")
    driver.submit(1)
    while not (found := [c for c in driver.commands if c["do"] == role]):
        driver.step()
    driver.commands = []
    driver.take({**found[0], "event": {"build": "built", "run": "ran"}[role], "text": "[]"})
    assert {"do": "stop", "worker": found[0]["worker"]} in driver.commands
    driver.drain()
    [result] = driver.results
    assert result.measurement.error_kind is not ErrorKind.WORKER_LOST


def test_which_workers_are_gone_is_told_with_how_they_ended():
    driver = Driver("n1", "n2")
    driver.submit(64)
    killed = until_it_runs(driver, "n2")[0]
    assert driver.dispatcher.lacking(TARGET) == ""
    driver.take({**killed, "event": "failed", "why": "it was killed.", "died": True})
    assert driver.dispatcher.lacking(TARGET) == ""  # n1 has one
    driver.drain()
    driver.take(nodes_event())
    none = f"no worker is alive that measures on {TARGET.summary}; all 3 ended: "
    assert driver.dispatcher.lacking(TARGET) == f"{none}its node is gone (2 times); it was killed"
    driver.take(nodes_event("n3"))
    driver.drain()
    assert driver.dispatcher.lacking(TARGET) == ""


def test_without_the_workers_that_build_nothing_can_be_measured_either():
    driver = Driver("n1")
    builder = next(m.id for m in driver.dispatcher.fleet.members() if m.plan.role == "build")
    event = {"event": "failed", "do": "build", "worker": builder, "why": "killed", "died": True}
    driver.dispatcher.take(event, 0.0)
    none = f"no worker is alive that builds for {TARGET.summary}; the only one ended: killed"
    assert driver.dispatcher.lacking(TARGET) == none


def test_a_target_whose_workers_are_gone_before_it_is_asked_for_is_refused_with_how_they_ended():
    driver = Driver("n1")
    driver.take(nodes_event())
    says = r"no worker is alive that measures on .*; the only one ended: its node is gone$"
    with pytest.raises(InputError, match=says):
        driver.submit(1)

"""The executor on real clusters of this machine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from signal import SIGINT
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.nodes import CODE, cluster
from tests.measure.cluster.simulated import HOST_SERVICES, candidate, latency
from tests.measure.cpu import c_kernels
from tests.scheduler.report.made_up import of_records, record
from tests.scheduler.report.served import Server
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.cluster.driver_status import drivers_at
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.cluster.following import ClusterWatch
from tilewright.measure.cluster.status import JobStatus
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.measure.testing.executor import ExecutorContract, collect, submit
from tilewright.spaces.errors import InputError


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(cpus=4) as made:
        yield made.address


@pytest.fixture(scope="module")
def connected(address: str) -> Iterator[RayExecutor]:
    executor = RayExecutor(address)
    yield executor
    executor.close()


class TestRayExecutor(ExecutorContract):
    """Real kernels, built and measured by workers that Ray started."""

    @pytest.fixture(autouse=True)
    def _find(self, address):
        self.address = address

    @pytest.fixture
    def executor(self, connected):  # that takes seconds, and tests leave nothing behind
        return connected

    def make(self):
        return RayExecutor(self.address)

    def good(self, name):
        return c_kernels.good(name)

    def other(self, name):
        return c_kernels.good(name, c_kernels.product(16, 16, 16))

    def crashing(self, name):
        return c_kernels.crashing(name)

    def broken(self, name):
        return c_kernels.broken(name)

    def slow(self, name):
        return c_kernels.slow(name)

    def test_kernels_that_crash_or_hang_end_and_harm_nobody(self, executor):
        made = [c_kernels.good(f"good{i}") for i in range(6)]
        made[1:1] = [c_kernels.crashing("crashing")]
        made[3:3] = [c_kernels.hanging("hanging")]
        submit(executor, *made)
        found = {str(m.schedule["name"]): m for m in collect(executor)}
        assert len(found) == len(made)
        assert found.pop("crashing").error_kind is ErrorKind.CRASH
        assert found.pop("hanging").error_kind is ErrorKind.TIMEOUT
        assert all(m.status is Status.OK for m in found.values())

    def test_a_measurement_says_where_it_was_made(self, executor):
        submit(executor, c_kernels.good("placed"))
        [measurement] = collect(executor)
        assert measurement.place.host
        assert f" cpu {min(os.sched_getaffinity(0))}-" in measurement.place.device
        assert measurement.place.toolchain


@pytest.fixture(scope="module")
def simulated(address: str) -> Iterator[RayExecutor]:
    executor = RayExecutor(address, host_services=HOST_SERVICES, code=CODE)
    yield executor
    executor.close()


def names(measurements):
    return sorted(str(m.schedule["name"]) for m in measurements)


def test_who_kills_builders_or_workers_ends_and_all_others_are_measured(simulated):
    made = [candidate(f"k{i}") for i in range(2)]
    killers = [candidate("k2", kills="runner"), candidate("k3", kills="builder")]
    submit(simulated, *made, *killers)
    found = {str(m.schedule["name"]): m for m in collect(simulated)}
    assert len(found) == 4
    for name in ("k2", "k3"):
        assert found[name].status is Status.ERROR
        assert found[name].error_kind is ErrorKind.WORKER_LOST
    for one in made:
        assert found[one.schedule["name"]].score == latency(one.schedule)


def test_a_fault_of_a_worker_is_the_machines_failure(simulated):
    submit(simulated, candidate("a", faults=True))
    [lost] = collect(simulated)
    assert lost.status is Status.LOST
    assert lost.error_kind is ErrorKind.DEVICE
    assert "the device is gone" in lost.error_text


def lives(executor: RayExecutor) -> list[str]:
    with executor._outcomes.changed:
        return [member.id for member in executor._dispatcher.fleet.members()]


def test_a_clock_that_is_set_forward_makes_no_worker_late(simulated, monkeypatch):
    collect(simulated)
    before, days = lives(simulated), count(2e9, 86_400.0)
    stepped = SimpleNamespace(time=days.__next__, monotonic=time.monotonic)
    monkeypatch.setattr("tilewright.measure.cluster.executor.time", stepped)
    submit(simulated, *(candidate(f"d{i}") for i in range(64)))
    assert [m.ok for m in collect(simulated)] == [True] * 64
    assert lives(simulated) == before


def test_a_target_that_no_worker_has_is_refused_with_what_there_is(simulated):
    with pytest.raises(InputError, match=r"no worker has the target .* they have: cpu made up"):
        simulated.submit(c_kernels.good("a").job, [])


def test_a_kind_of_target_that_no_node_has_is_refused_with_what_they_have(address):
    words = r"^no worker of the cluster measures on cuda: its nodes have \d+ CPUs? and no GPU$"
    with pytest.raises(InputError, match=words):
        RayExecutor(address, Needs(("cuda",)), host_services=HOST_SERVICES, code=CODE)


def test_the_cluster_tells_what_its_drivers_do(address, simulated):
    job = replace(candidate("a").job, id="watched")
    submit(simulated, candidate("a", job), candidate("b", job, broken=True))
    collect(simulated, job)
    known: list[JobStatus] = []
    while not known:
        jobs = [j for driver in drivers_at(address) for j in driver.jobs if j.id == job.id]
        known = [j for j in jobs if j.done == 2]
    [status] = known
    assert status.failures["compile_error"] == 1
    assert (status.waiting, status.building, status.running) == (0, 0, 0)
    with closing(ClusterWatch(address)) as watch:
        watch.check()
        while status not in [job for driver in watch.drivers for job in driver.jobs]:
            time.sleep(0.05)
        assert watch.trouble == ""
    deadline = time.monotonic() + 100  # those that others have killed begin anew
    while {worker.state for worker in simulated.status().workers} != {"idle"}:
        assert time.monotonic() < deadline, simulated.status().workers
        time.sleep(0.05)


def test_executors_of_one_process_are_drivers_apart(connected, simulated):
    assert connected.status().driver != simulated.status().driver


def test_a_dashboard_shows_the_queue_and_the_workers(address, simulated, tmp_path):
    for library in ("jinja2", "uvicorn"):
        pytest.importorskip(library, reason="needs the extra dashboard")
    job = replace(candidate("a").job, id="shown")
    submit(simulated, candidate("a", job), candidate("b", job, broken=True))
    collect(simulated, job)
    dashboard = Server(of_records(tmp_path / "one", [record(1, 1e-3)]), "--address", address)
    try:
        part, deadline = "", time.monotonic() + 100
        while "<td>1 compile_error</td>" not in part:
            assert time.monotonic() < deadline, part
            part = json.loads(dashboard.get("/news")[1])["part"]
            time.sleep(0.1)
        assert "<td>shown</td>" in part
        assert "Workers of the cluster" in part
        assert "It does not answer" not in part
    finally:
        dashboard.process.send_signal(SIGINT)
        dashboard.process.communicate(timeout=60)
    assert dashboard.process.returncode == 130

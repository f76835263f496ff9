"""Clusters of several devices: each has one worker, which does what is for it, while it is well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

from tests.measure.cluster.nodes import CODE, OPTIONS, cluster, members_on
from tests.measure.cluster.simulated import WORK, candidate, gpu, latency
from tilewright.measure.cluster.driver.plan import Needs
from tilewright.measure.cluster.executor import RayExecutor
from tilewright.measure.records.measurement import Job
from tilewright.measure.testing.executor import collect

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with cluster(cpus=4) as made:
        made.add_node(num_cpus=0, num_gpus=2, env_vars={"SIMULATED_GPU": "large"}, **OPTIONS)
        made.add_node(num_cpus=0, num_gpus=1, env_vars={"SIMULATED_GPU": "small"}, **OPTIONS)
        yield made


def test_each_gpu_measures_by_itself_what_is_for_its_model_and_others_build(nodes):
    jobs = {model: Job(model, WORK, gpu(model)) for model in ("large", "small")}
    executor = RayExecutor(
        nodes.address, Needs(("cuda",)), host_services="simulated:Gpus", code=CODE
    )
    with closing(executor):
        assert set(executor.targets()) == {job.target for job in jobs.values()}
        assert executor.devices == 3
        for job in jobs.values():
            executor.submit(job, [candidate(f"{job.id}{i}", job) for i in range(200)])
        found = {id: collect(executor, job) for id, job in jobs.items()}
        builders = {m.plan.role: m.done for m in members_on(executor, nodes.head_node)}
    assert builders == {"build": 400}  # the only node with cores has no GPU
    for measurements in found.values():
        assert len({m.schedule for m in measurements}) == len(measurements) == 200
        assert all(m.ok for m in measurements)
    assert {m.place.device for m in found["large"]} == {"large 0", "large 1"}
    assert {m.place.device for m in found["small"]} == {"small 0"}


def test_two_drivers_share_gpus_without_ever_meeting_on_one(nodes):
    job = Job("large", WORK, gpu("large"))
    options = {"needs": Needs(("cuda",)), "host_services": "simulated:Gpus", "code": CODE}
    with (
        closing(RayExecutor(nodes.address, **options)) as one,
        closing(RayExecutor(nodes.address, **options)) as another,
    ):
        for executor in (one, another):
            made = [candidate(f"{id(executor)}-{i}", job) for i in range(100)]
            executor.submit(job, made)
        found = collect(one) + collect(another)
    assert len({m.schedule for m in found}) == 200
    assert all(m.ok for m in found)


def test_a_device_that_becomes_slow_is_reported_and_its_results_bear_a_note(nodes):
    with closing(
        RayExecutor(nodes.address, host_services="simulated:Throttled", code=CODE)
    ) as executor:
        made = [candidate(f"c{i}") for i in range(600)]
        executor.submit(made[0].job, made)
        found = collect(executor)
        status = {w.device: w for w in executor.status().workers if w.role == "run"}
    tired, well = "made up cpu 2-3", "made up cpu 0-1"
    assert len(found) == 600
    noted = [m for m in found if "drift" in m.info]
    assert {m.place.device for m in noted} == {tired}
    assert all((m.score == latency(m.schedule)) == (m not in noted) for m in found)
    assert "its reference kernel takes 2.00 times" in status[tired].why
    assert status[well].why == ""

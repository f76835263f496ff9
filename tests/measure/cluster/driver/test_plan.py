import itertools
from dataclasses import replace

import pytest

from tests.measure.cluster.simulated import TARGET
from tests.measure.cluster.test_topology import LEFT, RIGHT
from tilewright.measure.cluster.driver.plan import BYTES_PER_JOB, JOBS, Needs, Node, workers_of
from tilewright.measure.cluster.facts import Facts

GIB = 1 << 30


def node(cpus, gpus=0, memory=64 * GIB):
    return Node("n1", "10.0.0.1", cpus, gpus, memory)


def facts(*domains, cpu=TARGET):
    return Facts("host", {}, domains, cpu, "", "13.5")


def plans(role, *arguments):
    return [plan for plan in workers_of(*arguments) if plan.role == role]


TWO_CORES = facts(((0,), (1,)))


def test_a_small_host_measures_on_one_core_and_builds_on_the_other():
    [run] = plans("run", node(2), TWO_CORES, Needs())
    [build] = plans("build", node(2), TWO_CORES, Needs())
    assert (run.cpus, dict(run.claim)) == ((0, 1), {"CPU": 1})
    assert (build.cpus, build.jobs, dict(build.claim)) == ((1,), 1, {"CPU": 1})
    assert not run.takes_turns
    assert not build.takes_turns


def test_a_host_of_one_core_builds_beside_what_it_measures():
    [build] = plans("build", node(1), facts(((0,),)), Needs())
    assert (build.cpus, build.jobs, dict(build.claim)) == ((0,), 1, {"CPU": 0})


def test_kernels_of_all_cores_take_turns_with_their_compilers():
    needs = Needs(threads=2)
    [run] = plans("run", node(2), TWO_CORES, needs)
    [build] = plans("build", node(2), TWO_CORES, needs)
    assert run.takes_turns
    assert build.takes_turns
    assert (dict(run.claim), build.jobs, dict(build.claim)) == ({"CPU": 2}, 2, {"CPU": 0})


def test_each_cache_measures_by_itself_and_claims_whole_cores():
    running = plans("run", node(16), facts(LEFT, RIGHT), Needs(threads=2))
    assert [dict(run.claim) for run in running] == [{"CPU": 4}, {"CPU": 4}]
    assert [run.cpus for run in running] == [
        (0, 1, 2, 3, 8, 9, 10, 11),
        (4, 5, 6, 7, 12, 13, 14, 15),
    ]
    [build] = plans("build", node(16), facts(LEFT, RIGHT), Needs(threads=2))
    assert build.cpus == (2, 3, 6, 7, 10, 11, 14, 15)
    assert build.jobs == 4


def test_each_gpu_has_a_worker_and_compilers_have_the_other_cores():
    needs = Needs(kinds=("cuda",))
    running = plans("run", node(16, gpus=2), facts(LEFT, RIGHT), needs)
    assert [dict(run.claim) for run in running] == [{"GPU": 1, "CPU": 1}] * 2
    [build] = plans("build", node(16, gpus=2), facts(LEFT, RIGHT), needs)
    assert build.jobs == 8


def test_memory_bounds_the_compilers():
    few = node(16, memory=3 * BYTES_PER_JOB)
    assert sum(b.jobs for b in plans("build", few, facts(LEFT, RIGHT), Needs(("cuda",)))) == 3


def test_a_host_without_a_compiler_measures_on_no_core():
    assert plans("run", node(2), facts(((0,), (1,)), cpu=None), Needs()) == []


def test_a_node_that_lends_no_cpus_gets_no_workers():
    assert workers_of(node(0), TWO_CORES, Needs()) == []


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("cpus", [1, 2, 7, 16])
@pytest.mark.parametrize("gpus", [0, 1, 4])
def test_no_more_is_claimed_than_there_is_and_no_core_is_timed_twice(threads, cpus, gpus):
    shape = facts(LEFT, RIGHT, cpu=replace(TARGET, cores=8))
    found = workers_of(node(cpus, gpus), shape, Needs(("cpu", "cuda"), threads))
    assert sum(plan.claim["CPU"] for plan in found) <= max(cpus, gpus)
    assert sum(plan.claim.get("GPU", 0) for plan in found) == gpus
    assert len({plan.name for plan in found}) == len(found)
    assert all(plan.jobs <= JOBS or plan.takes_turns for plan in found)
    timed = [plan.cpus for plan in found if plan.kind == "cpu"]
    assert all(not set(a) & set(b) for a, b in itertools.combinations(timed, 2))

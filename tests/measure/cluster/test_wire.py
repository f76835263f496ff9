"""What drivers and workers send each other arrives, and nonsense does not."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.measure.cluster.simulated import (
    SimulatedBuilder,
    SimulatedRunner,
    candidate,
)
from tests.measure.cpu import c_kernels
from tilewright.measure.cluster.wire import (
    NO_SOURCE,
    Stored,
    build_answer,
    build_request,
    read_build_answer,
    read_build_request,
    read_run_answer,
    read_run_request,
    run_answer,
    run_request,
)
from tilewright.measure.interfaces import Built
from tilewright.measure.records.measurement import ErrorKind, Job, Status
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Argument, Launch, Role
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target


def hopper():
    """Candidates with launches and tensor maps."""
    import numpy as np

    from tilewright.measure.records.measurement import Candidate

    work, target = (
        workload("matmul", m=512, n=512, k=512, dtype="float16"),
        detect_target("cuda:sm_90a"),
    )
    space = space_for(work, target)
    job = Job("gpu", work, target, best=1e-4, final=True, rivals=("numpy",))
    rows = space.sample(np.random.default_rng(0), 24)
    schedules = [space.schedule(row) for row in rows]
    return [Candidate(job, schedule, space.lower(schedule)) for schedule in schedules]


@pytest.fixture(params=["c", "cuda"])
def candidates(request):
    return [c_kernels.good("a"), c_kernels.good("b")] if request.param == "c" else hopper()


def test_candidates_arrive_as_they_were(candidates):
    job, arrived = read_build_request(build_request(candidates[0].job, candidates))
    assert job == candidates[0].job
    assert arrived == candidates


def test_a_program_arrives_with_its_names_and_outputs():
    """Equal programs may have other names; a kernel's arguments are those of its own."""
    for one, two in ("yi", "ba"):
        text = f"{one}[r,c] = x[r,c] + 1\n{two}[r] = argmax[c](x[r,c])\n-> {one}, {two}"
        work = workload(text, r=4, c=8)
        sent = c_kernels.candidate("several", "", work)
        _, (arrived,) = read_build_request(build_request(sent.job, [sent]))
        assert [array.name for array in arrived.kernel.call.written] == [one, two]
        assert [array.name for array in arrived.kernel.call.read] == ["x"]
        assert arrived.job.workload.operands == work.operands


def test_a_call_of_several_launches_arrives_with_the_roles_of_its_arguments():
    sent = c_kernels.good("a")
    roles = zip(sent.kernel.call.arrays, Role, strict=True)
    given = tuple(Argument(array, role) for array, role in roles)
    launches = (Launch((2, 1, 1), (32, 1, 1)), Launch((1, 1, 1), (32, 1, 1), entry="end"))
    call = replace(sent.kernel.call, arguments=given, launches=launches)
    sent = replace(sent, kernel=replace(sent.kernel, call=call))
    _, (arrived,) = read_build_request(build_request(sent.job, [sent]))
    assert arrived == sent


def test_what_is_to_be_run_arrives_without_its_text(candidates):
    built = [
        Stored(c, seconds=0.5, info={"registers": 32}, toolchain="x 1", build=i % 2, place=i // 2)
        for i, c in enumerate(candidates)
    ]
    binaries = [[bytes([build, place]) for place in range(len(built))] for build in range(2)]
    job, arrived = read_run_request(run_request(candidates[0].job, built), binaries)
    assert job == candidates[0].job
    for was, came in zip(built, arrived, strict=True):
        assert came.binary == bytes([was.build, was.place])
        assert (came.seconds, came.info, came.toolchain) == (0.5, {"registers": 32}, "x 1")
        kernel = replace(was.candidate.kernel, source=NO_SOURCE)
        assert came.candidate == replace(was.candidate, kernel=kernel)


def test_a_binary_of_many_kernels_travels_once(tmp_path):
    path = tmp_path / "unit.so"
    path.write_bytes(b"many")
    made = [candidate(name) for name in "abc"]
    built = [Built(c, path) for c in made[:2]]
    built.append(Built(made[2], error_kind=ErrorKind.COMPILE, error_text="error: no"))
    text, binaries = build_answer(built)
    assert binaries == [b"many"]
    first, second, failure = read_build_answer(text, 7, made[0].job, made)
    assert (first.build, first.place, second.place) == (7, 0, 0)
    assert first.candidate is made[0]
    assert (failure.status, failure.error_kind) == (Status.ERROR, ErrorKind.COMPILE)


def measured(*made):
    built = SimulatedBuilder().build(made)
    return built, SimulatedRunner(0.0).run(made[0].job, built)


def test_measurements_arrive_as_they_were():
    made = [candidate("a"), candidate("b")]
    built, measurements = measured(*made)
    assert read_run_answer(run_answer(measurements), made[0].job, built) == measurements


def change(text, **fields):
    data = json.loads(text)
    data["measured"][0] |= fields
    return json.dumps(data)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text[:-1], "not JSON"),
        (lambda text: "[]", "expected a JSON object"),
        (lambda text: '{"measured": []}', "no list of 1"),
        (lambda text: text[:-1] + ', "more": 1}', "unknown"),
        (lambda text: change(text, status="fine"), "status='fine'"),
        (lambda text: change(text, score=1e-12, samples=[1e-12]), "cannot reach"),
        (lambda text: change(text, score=5e-3), "not the statistic"),
        (lambda text: change(text, score=float("nan")), "not JSON"),
        (lambda text: change(text, round="final"), "another candidate"),
        (lambda text: change(text, place={"host": "a"}), "missing"),
        (
            lambda text: change(text, schedule={"template": "x", "decisions": {}}),
            "another candidate",
        ),
    ],
)
def test_nonsense_of_a_worker_is_refused(spoil, words):
    built, measurements = measured(candidate("a"))
    with pytest.raises(InputError, match=words):
        read_run_answer(spoil(run_answer(measurements)), built[0].candidate.job, built)


@pytest.mark.parametrize("place", [-1.5, "0", None, True])
def test_nonsense_of_a_builder_is_refused(place):
    made = candidate("a")
    text, _ = build_answer(SimulatedBuilder().build([made]))
    data = json.loads(text)
    data["built"][0]["binary"] = place
    with pytest.raises(InputError, match="binary="):
        read_build_answer(json.dumps(data), 1, made.job, [made])


def test_nothing_that_speaks_with_a_cluster_knows_a_database():
    """Only the driver writes: its tuner, that is, and no worker and no process that asks one."""
    program = """
import importlib, pkgutil, sys
from tilewright.measure import cluster
for module in pkgutil.walk_packages(cluster.__path__, f"{cluster.__name__}."):
    importlib.import_module(module.name)
print(*{"tilewright.measure.database", "sqlalchemy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")

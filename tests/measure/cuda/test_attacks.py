"""A GPU's runner under attack, over an emulated device: whoever is innocent gets a right record."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import PackingBuilder
from tests.measure.cuda.test_runner import BODY, OPENER, QUICK, TARGET, WORK, candidate
from tilewright.measure import retrying
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.spaces.operators import workload

WRONG = BODY.replace("n, sum)", "n, sum + (m == 3))")
FAR = BODY.replace("C + m", "C + 100000000 * m")


pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture
def runner():
    made = CudaRunner(TARGET, OPENER, QUICK, least_seconds=200)
    yield made
    made.close()


def settled(runner, built):
    """The final records by name, tried again as executors do it, and how often each came."""
    records = {}
    for results in retrying.run(runner.run, built[0].candidate.job, built):
        for result in results:
            name = result.candidate.schedule["name"]
            assert name not in records, "one record each"
            records[name] = result.measurement
    return records


def built(*candidates):
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    return builder.build(candidates), builder


def test_the_guilty_are_recorded_and_the_innocent_measured(runner):
    bad = {
        "far": (FAR, ErrorKind.CRASH),
        "beside": (BODY + "// writes beside its output\n", ErrorKind.OUT_OF_BOUNDS),
        "kills": (BODY + "// kills\n", ErrorKind.CRASH),
        "idle": (BODY + "// is not launched\n", ErrorKind.REJECTED),
        "late": (BODY + "// returns from run 3\n", ErrorKind.WRONG),
    }
    hog = candidate("hog", workspace_bytes=1 << 40)
    mixed = [
        candidate("first"),
        *(candidate(name, body) for name, (body, _) in bad.items()),
        hog,
        candidate("last"),
    ]
    batch, builder = built(*mixed)
    records = settled(runner, batch)
    builder.close()
    assert {name for name, m in records.items() if m.ok} == {"first", "last"}
    kinds = {name: m.error_kind for name, m in records.items() if not m.ok}
    assert kinds == {name: kind for name, (_, kind) in bad.items()} | {"hog": ErrorKind.MEMORY}
    assert {m.status for m in records.values() if not m.ok} == {Status.ERROR}


def killer(runner, generator, seconds):
    """Kills the child that is at work at a random moment, once."""

    def kill():
        time.sleep(generator.uniform(0, seconds))
        process = runner._child._process
        if process is not None:
            process.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


TWENTY = pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])


@pytest.mark.parametrize("moments", [2, TWENTY])
def test_a_server_killed_at_random_moments_costs_no_record(runner, moments):
    batch, builder = built(candidate("a"), candidate("wrong", WRONG), candidate("b"))
    generator = random.Random(moments)
    start = time.monotonic()
    settled(runner, batch)  # compiles for the emulator, and says how long a run takes
    usual = time.monotonic() - start
    for _ in range(moments):
        thread = killer(runner, generator, usual)
        records = settled(runner, batch)
        thread.join()
        found = {name: (m.status, m.error_kind) for name, m in records.items()}
        assert found == {
            "a": (Status.OK, None),
            "wrong": (Status.ERROR, ErrorKind.WRONG),
            "b": (Status.OK, None),
        }
    builder.close()


LARGE = workload("matmul", m=300, n=300, k=33, dtype="float32", b="col")


@pytest.mark.parametrize(("work", "left"), [(WORK, "10000"), (LARGE, "200000")])
def test_a_device_without_memory_for_the_problem_says_so(runner, monkeypatch, work, left):
    """Nor for the child's own check, or for that and no more."""
    batch, builder = built(candidate("a", work=work), candidate("b", work=work))
    builder.close()
    monkeypatch.setenv(emulated_device.MEMORY_LEFT, left)
    runner._child.end()
    found = runner.run(batch[0].candidate.job, batch)
    assert {m.status for m in found} == {Status.LOST}
    assert all("CUDA_ERROR_OUT_OF_MEMORY" in m.error_text for m in found)

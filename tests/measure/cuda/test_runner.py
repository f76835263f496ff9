"""The GPU's runner, its child and its protocol, over an emulated device."""

from __future__ import annotations

import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels import written
from tests.measure.cuda.emulated_device import EmulatedDevice, PackingBuilder, pack
from tests.measure.cuda.runs.small_runs import BODY, OPENER, QUICK, TARGET, WORK, candidate, measure
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.cuda.session import MeasuringSession, Trial
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job, Status
from tilewright.measure.testing.runner import RunnerContract
from tilewright.scheduler.verification import draw
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Launch, arguments
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture(scope="module")
def shared_runner(libraries):
    """One for several tests, whatever those before have done to it."""
    runner = CudaRunner(TARGET, OPENER, least_seconds=200)
    yield runner
    runner.close()


def test_a_clock_that_is_set_back_meanwhile_takes_no_time_from_a_run(monkeypatch):
    times = count(2e9, -1e6)
    stepped = SimpleNamespace(time=times.__next__, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr("tilewright.measure.cuda.runner.time", stepped)
    [measured] = measure([candidate("a")])
    assert measured.started_at == 2e9
    assert 0 < measured.run_seconds < 1e4


class TestCudaRunner(RunnerContract):
    clock = "device"

    def make(self):
        return CudaRunner(TARGET, OPENER, least_seconds=200)

    @pytest.fixture
    def runner(self, shared_runner):
        return shared_runner

    def make_builder(self):
        return PackingBuilder(NvrtcBuilder(TARGET))

    def good(self, name):
        return candidate(name)

    def wrong(self, name):
        return candidate(name, BODY.replace("n, sum)", "n, sum + (m == 3))"))

    def crashing(self, name):
        return candidate(name, BODY.replace("C + m", "C + 100000000 * m"))

    def broken(self, name):
        return candidate(name, "this is no C;")

    def slow(self, name):
        return candidate(name, BODY + "  // takes 0.1\n")


def test_what_a_kernel_does_beside_its_result_is_found():
    found = measure(
        [
            candidate("beside", BODY + "// writes beside its output\n"),
            candidate("input", BODY + "// writes to its input\n"),
            candidate("refused", BODY + "// is refused\n"),
            candidate("unwritten", BODY.replace("n < 45", "n < 44")),
            candidate("good"),
            candidate("idle", BODY + "// is not launched\n"),
            candidate("hog", workspace_bytes=1 << 40),
        ]
    )
    assert [m.error_kind for m in found] == [
        ErrorKind.OUT_OF_BOUNDS,
        ErrorKind.OUT_OF_BOUNDS,
        ErrorKind.REJECTED,
        ErrorKind.WRONG,
        None,
        ErrorKind.REJECTED,
        ErrorKind.MEMORY,
    ]
    assert {m.status for m in (*found[:4], found[5])} == {Status.ERROR}
    assert found[6].lost, "others may have held the memory"
    texts = [m.error_text for m in found]
    assert texts[0] == "the kernel writes after C"
    assert texts[1] == "the kernel writes to its input B"
    assert texts[2].startswith("CUDA_ERROR_INVALID_IMAGE")
    assert texts[3].startswith("C[0, 44] is nan, expected ")
    assert texts[3].endswith("(67 of 3015 elements wrong, call 1)")
    assert found[4].status is Status.OK
    assert texts[5:] == [
        "CUDA_ERROR_INVALID_VALUE: invalid argument",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ]


@pytest.mark.parametrize("final", [False, True])
def test_a_kernel_that_goes_wrong_while_it_is_timed_is_found(final):
    candidates = [
        candidate("good"),
        candidate("late", f"{BODY} // wrong from run 3\n"),
        candidate("idle", f"{BODY} // returns from run 3\n"),
        candidate("other"),
        candidate("once", f"{BODY} // returns from run 2\n"),
    ]
    found = measure(candidates, final=final)
    kinds = [None, ErrorKind.WRONG, ErrorKind.WRONG, None, ErrorKind.WRONG]
    assert [m.error_kind for m in found] == kinds, [m.error_text for m in found]
    assert "1 of 3015 elements wrong, last call" in found[1].error_text
    assert "3015 of 3015 elements wrong, last call" in found[2].error_text
    assert "3015 of 3015 elements wrong, call 2" in found[4].error_text
    assert found[1].score is None


def test_real_schedules_run_through_the_whole_chain():
    work = workload("matmul", m=72, n=80, k=64, dtype="float16", epilogue="relu(x + bias[n])")
    space = space_for(work, TARGET)
    candidates = [
        Candidate(Job("test", work, TARGET), schedule, space.lower(schedule))
        for schedule in draw(space, 2 * len(space.templates), seed=4)
    ]
    found = measure(candidates)
    kinds = {m.error_kind for m in found} - {None, ErrorKind.REJECTED}
    assert not kinds, [m.error_text for m in found]
    assert sum(m.ok for m in found) >= len(space.templates)


def test_a_workspace_is_zero_where_asked_and_must_stay_so(tmp_path):
    body = BODY.replace("float sum = 0;", "float sum = (float)tw::load_global(workspace + 3);")
    for end, kind in (("", None), ("// leaves its workspace\n", ErrorKind.WRONG)):
        given = parameters(arguments(WORK.inputs, WORK.outputs), True)
        source = f'extern "C" __global__ void w({given}) {{{body}{end}}}'
        launch = Launch((67, 1, 1), (32, 1, 1))
        memory = {"workspace_bytes": 64, "workspace_zeroed": 16}
        kernel = written("cuda", "w", source, WORK.operands, launch, **memory)
        path = tmp_path / "w"
        path.write_bytes(pack(kernel))
        trial = Trial(kernel.call, path)
        with MeasuringSession(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
            session.load(trial)
            session.judge(trial, QUICK, np.inf)
        assert trial.error_kind is kind, trial.error_text

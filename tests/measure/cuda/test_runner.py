"""The GPU's runner, its child and its protocol, over an emulated device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from measure.cuda import problems
from measure.cuda.device import DeviceError
from measure.cuda.nvrtc import NvrtcBuilder
from measure.cuda.runner import CudaRunner
from measure.cuda.session import CHECKED, Session, Trial, check_oracle
from measure.cuda.trusted import oracle, products
from measure.cuda.trusted.evaluating import evaluate
from measure.records.measurement import Candidate, ErrorKind, Job, Status
from measure.registry import runner_for
from measure.testing.runner import RunnerContract
from measure.timing import TimingProtocol
from scheduler.verification import draw
from spaces.cuda.abi import parameters
from spaces.errors import InputError
from spaces.kernel import Launch, arguments
from spaces.operators import workload
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.target import detect_target
from tests.kernels import written
from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import EmulatedDevice, PackingBuilder, pack

OPENER = "tests.measure.cuda.emulated_device:open_device"
TARGET = detect_target("cuda:sm_90a")
WORK = CHECKED
JOB = Job("test", WORK, TARGET)
QUICK = TimingProtocol(samples=3, contender_samples=2)

BODY = """
  const int m = blockIdx.x;
  for (int n = threadIdx.x; n < 45; n += 32) {
    float sum = 0;
    for (int k = 0; k < 33; k++)
      sum += tw::load_global(A + m * 33 + k) * tw::load_global(B + n * 33 + k);
    tw::store_global(C + m * 45 + n, sum);
  }
"""


def candidate(name: str, body: str = BODY, work=WORK, **options) -> Candidate:
    given = parameters(arguments(work.inputs, work.outputs))
    source = f'extern "C" __global__ void {name}({given}) {{{body}}}'
    launch = Launch((67, 1, 1), (32, 1, 1))
    kernel = written("cuda", name, source, work.operands, launch, **options)
    job = replace(JOB, workload=work)
    return Candidate(job, Schedule("written", (("name", name),)), kernel)


pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture(scope="module")
def shared_runner(libraries):
    """One for several tests, whatever those before have done to it."""
    runner = CudaRunner(TARGET, OPENER, least_seconds=200)
    yield runner
    runner.close()


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


def measure(candidates, runner=None, final=False):
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    runner = runner or CudaRunner(TARGET, OPENER, QUICK, least_seconds=200)
    try:
        built = builder.build(candidates)
        runnable = [b for b in built if b.binary is not None]
        ran = iter(runner.run(replace(candidates[0].job, final=final), runnable))
        return [b.failure() if b.binary is None else next(ran) for b in built]
    finally:
        runner.close()
        builder.close()


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


def test_hangs_and_deaths_cost_one_turn_each_and_leave_no_process():
    before = _children("measure.cuda.server")
    hangs, kills = (candidate(n, BODY + f"// {n}\n") for n in ("hangs", "kills"))
    a, b, c = map(candidate, "abc")
    measure([a, b, c, kills])  # compiles them for the emulator, which may take more than 6 s
    runner = CudaRunner(TARGET, OPENER, QUICK, least_seconds=6)
    found = measure([a, hangs, b, kills, c], runner)
    kinds = [m.error_kind for m in found]
    assert kinds == [None, ErrorKind.TIMEOUT, None, ErrorKind.WORKER_LOST, None]
    assert [m.status for m in found[1::2]] == [Status.LOST, Status.LOST]
    assert "within 6 s" in found[1].error_text
    assert "SIGSEGV" in found[3].error_text
    assert _children("measure.cuda.server") == before


def _children(word: str) -> list[psutil.Process]:
    own = psutil.Process().children(recursive=True)
    return [p for p in own if word in " ".join(p.cmdline())]


def test_closing_from_another_thread_ends_a_run(monkeypatch, tmp_path):
    before, sign = _children("measure.cuda.server"), tmp_path / "hangs"
    monkeypatch.setenv(emulated_device.HANGING, str(sign))
    runner = CudaRunner(TARGET, OPENER, least_seconds=200)

    def close():
        while not sign.exists():
            time.sleep(0.01)
        runner.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(RuntimeError, match="closed"):
        measure([candidate("hangs", BODY + "// hangs\n")], runner)
    thread.join()
    assert _children("measure.cuda.server") == before


PARENT = f"""
import os, signal
from measure.cuda.runner import CudaRunner
from spaces.target import detect_target
runner = CudaRunner(detect_target("cuda:sm_90a"), {OPENER!r})
print(runner._child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_child_goes_with_its_parent():
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    deadline = time.monotonic() + 100
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_a_device_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setenv(emulated_device.BROKEN, "no CUDA-capable device is detected")
    with pytest.raises(InputError, match="no CUDA-capable device is detected; it takes an NVIDIA"):
        CudaRunner(TARGET, OPENER)


def test_a_runner_asks_for_the_gpu_it_is_given():
    with pytest.raises(InputError, match="no GPU to run on: there is no GPU 3;"):
        CudaRunner(TARGET, "tests.measure.cuda.emulated_device:open_nothing", device=3)


def test_a_device_that_is_gone_for_good_blames_no_kernel(monkeypatch):
    runner = CudaRunner(TARGET, OPENER, QUICK, least_seconds=200)
    monkeypatch.setenv(emulated_device.BROKEN, "the GPU has fallen off the bus")
    kills = candidate("kills", BODY + "// kills\n")
    found = measure([kills, candidate("good")], runner)
    assert [m.status for m in found] == [Status.LOST, Status.LOST]
    assert found[1].error_kind is ErrorKind.DEVICE
    assert "not answer any more: the GPU has fallen off the bus" in found[1].error_text


def test_a_gpu_of_another_kind_is_refused():
    with pytest.raises(InputError, match=r"the target is NVIDIA A10 .*GPU here is NVIDIA H200"):
        CudaRunner(detect_target("cuda:sm_86"), OPENER)


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU here")
def test_this_machine_has_no_gpu():
    with pytest.raises(InputError, match="tilewright verify works without"):
        runner_for(TARGET)


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


# -- the session alone ------------------------------------------------------------------------


def test_the_judges_agree_with_numpy_or_are_not_believed(monkeypatch):
    device = EmulatedDevice()
    check_oracle(device)
    assert not device._memory
    double = products.as_double
    monkeypatch.setattr(products, "as_double", lambda value, kind: f"1.001 * {double(value, kind)}")
    with pytest.raises(DeviceError, match="otherwise than NumPy"):
        check_oracle(device)


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
        with Session(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
            session.load(trial)
            session.judge(trial, QUICK, np.inf)
        assert trial.error_kind is kind, trial.error_text


class _Scripted(EmulatedDevice):
    """Whose pulse is slow in some rounds."""

    def __init__(self, slow: set[int]) -> None:
        super().__init__()
        self.slow, self.round = slow, -1

    def seconds(self, call, calls=1, cold=True):
        if "tw_pulse" in call.source:
            self.round += 1
            return 2e-5 if self.round in self.slow else 1e-5
        return super().seconds(call, calls, cold)


@pytest.mark.parametrize(("slow", "rounds"), [(set(), 4), ({2}, 5), (set(range(1, 90)), 8)])
def test_rounds_in_which_the_clock_drifts_are_repeated(tmp_path, slow, rounds):
    path = tmp_path / "good"
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    device = _Scripted(slow)
    trials = [Trial(good.call, path), Trial(good.call, path)]
    started = []
    with Session(device, WORK, seed=3, pulse_steps=1) as session:
        for trial in trials:
            session.load(trial)
            session.judge(trial, QUICK, np.inf)
        protocol = TimingProtocol(samples=4)
        pulses = list(session.rounds(trials, protocol, started.append))
    assert device.round + 1 == rounds
    assert len(pulses) == 4
    assert [len(trial.samples) for trial in trials] == [4, 4]
    assert sorted(started) == [0] * rounds + [1] * rounds


@pytest.mark.parametrize(("judged", "least", "most"), [(1e-4, 6, 7), (4e-5, 13, 14), (1e-5, 0, 0)])
def test_long_calls_are_run_for_a_while_before_they_are_timed(tmp_path, judged, least, most):
    path = tmp_path / "good"
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    trials = [Trial(good.call, path), Trial(good.call, path)]
    counts, started = [0, 0], []
    with Session(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
        for i, trial in enumerate(trials):
            session.load(trial)
            trial.judged = judged

            def counted(i=i, call=trial.prepared):
                counts[i] += 1
                call()

            counted.source = trial.prepared.source
            counted.runs = 2  # which samples do not call again
            trial.prepared = counted
        list(session.rounds(trials, TimingProtocol(samples=1, heat=1e-3), started.append))
    assert all(least <= count <= most for count in counts)
    assert started[:2] == [0, 1] or not least


@pytest.mark.parametrize(("judged", "before"), [(1e-3, 1), (1e-5, 0)])
def test_a_long_call_is_timed_right_after_another(tmp_path, judged, before):
    """For the clock that it leaves."""
    path, calls = tmp_path / "good", []
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    trial = Trial(good.call, path)
    with Session(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
        session.load(trial)

        def counted():
            calls.append(judged)

        counted.source = trial.prepared.source
        counted.runs = 2  # which samples do not call again
        trial.prepared, trial.judged = counted, judged
        pulses = list(session.rounds([trial], TimingProtocol(samples=3), [].append))
    assert len(pulses) == len(trial.samples) == 3
    assert len(calls) >= 3 * before
    assert before or not calls


def test_a_device_that_bounds_programs_otherwise_than_the_host_is_not_believed(monkeypatch):
    softmax, device = workload("softmax r=3 c=40"), EmulatedDevice()

    def evaluated(buffers, draw, pause):
        evaluate(buffers, draw, pause)
        bounds = oracle.allowed_operand(softmax.outputs[0])
        buffers.write(bounds, 1.001 * buffers.read(bounds))

    with Session(device, softmax, seed=3, pulse_steps=1):
        pass
    monkeypatch.setattr(problems, "evaluate", evaluated)
    with (
        pytest.raises(DeviceError, match="otherwise than the host"),
        Session(device, softmax, seed=3, pulse_steps=1),
    ):
        pass


def test_a_child_that_does_not_start_is_no_gpu():
    with pytest.raises(InputError, match="no GPU to run on"):
        CudaRunner(TARGET, "tests.measure.cuda.emulated_device:nothing_of_this_name")

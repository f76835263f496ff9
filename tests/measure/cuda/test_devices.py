"""Which GPU a runner takes, and which it does not believe."""

from __future__ import annotations

import os

import pytest

from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import EmulatedDevice
from tests.measure.cuda.runs.small_runs import BODY, OPENER, QUICK, TARGET, candidate, measure
from tilewright.measure.cuda import problems
from tilewright.measure.cuda.device import DeviceError
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.cuda.session import MeasuringSession, check_oracle
from tilewright.measure.cuda.trusted import oracle, products
from tilewright.measure.cuda.trusted.evaluating import evaluate
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.measure.registry import runner_for
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

pytestmark = pytest.mark.usefixtures("libraries")


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


def test_the_judges_agree_with_numpy_or_are_not_believed(monkeypatch):
    device = EmulatedDevice()
    check_oracle(device)
    assert not device._memory
    double = products.as_double
    monkeypatch.setattr(products, "as_double", lambda value, kind: f"1.001 * {double(value, kind)}")
    with pytest.raises(DeviceError, match="otherwise than NumPy"):
        check_oracle(device)


def test_a_device_that_bounds_programs_otherwise_than_the_host_is_not_believed(monkeypatch):
    softmax, device = workload("softmax r=3 c=40"), EmulatedDevice()

    def evaluated(buffers, draw, pause):
        evaluate(buffers, draw, pause)
        bounds = oracle.allowed_operand(softmax.outputs[0])
        buffers.write(bounds, 1.001 * buffers.read(bounds))

    with MeasuringSession(device, softmax, seed=3, pulse_steps=1):
        pass
    monkeypatch.setattr(problems, "evaluate", evaluated)
    with (
        pytest.raises(DeviceError, match="otherwise than the host"),
        MeasuringSession(device, softmax, seed=3, pulse_steps=1),
    ):
        pass

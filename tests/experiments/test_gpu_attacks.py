"""The attacks on a GPU's runner, as far as an emulated device can stand for a GPU."""

from __future__ import annotations

import math

import pytest

from experiments.gpu_attacks.__main__ import Attackers
from experiments.gpu_attacks.kernels import GOOD, HARMFUL
from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import PackingBuilder
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.spaces.target import detect_target

OPENER = "tests.measure.cuda.emulated_device:open_device"
TARGET = detect_target("cuda:sm_90a")


def test_all_kernels_compile_and_what_cannot_be_launched_is_refused():
    builder = NvrtcBuilder(TARGET)
    built = builder.build([attack.candidate(TARGET) for attack in (*GOOD, *HARMFUL)])
    builder.close()
    refused = {b.candidate.kernel.call.entry: b.error_text for b in built if b.binary is None}
    assert list(refused) == ["crowded"], refused


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_attacks_find_nothing_on_an_emulated_device(tmp_path, monkeypatch):
    monkeypatch.setenv(emulated_device.LIBRARIES, str(tmp_path))
    # it compiles an emulator
    monkeypatch.setattr("tilewright.measure.cuda.child.STARTING_SECONDS", 1800.0)
    runner = CudaRunner(TARGET, OPENER, least_seconds=60)
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    attackers = Attackers(TARGET, runner, builder)
    kernels = attackers.mixed([attack for attack in HARMFUL if attack.on_emulator])
    kills = attackers.killed(2, until=math.inf)
    runner.close()
    builder.close()
    assert all(line["right"] for line in kernels), kernels
    assert kills["right"] == kills["runs"] > 0

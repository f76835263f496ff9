"""Kernels of several launches are built, run and judged in another process as any other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulated_device import PackingBuilder
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.measure.timing import TimingProtocol
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
QUICK = TimingProtocol(samples=2, contender_samples=1)
OPENER = "tests.measure.cuda.emulated_device:open_device"

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.mark.parametrize("operator", ["gated_matmul", "rmsnorm_matmul"])
def test_the_runner_judges_the_result_of_all_launches(operator):
    work = workload(operator, m=40, n=48, k=64, dtype="bfloat16")
    space, job = space_for(work, TARGET), Job("test", work, TARGET)
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    runner = CudaRunner(TARGET, OPENER, QUICK, 200)
    try:
        rows = space.sample(np.random.default_rng(3), 2)
        schedules = [space.schedule(row) for row in rows]
        candidates = [Candidate(job, s, space.lower(s)) for s in schedules]
        found = runner.run(job, builder.build(candidates))
    finally:
        runner.close()
        builder.close()
    assert [m.error_text for m in found] == [""] * len(found)
    assert all(m.ok and m.info["registers"] for m in found)

"""Kernels that read packed codes are judged on their values, in another process as any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cuda.emulated_device import PackingBuilder
from tests.measure.cuda.runs.small_runs import OPENER, QUICK, TARGET
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

TEXTS = {
    "zeros and scales": "q: uint3[n, k](packed); "
    "y[m, n] = sum[k](a[m, k] * ((q[n, k] - z[n, k // 64]) * s[n, k // 64]))",
    "floats": "q: float4_e2m1[n, k](packed); y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // 64])",
    "experts": "q: int4[3, n, k](packed); e: int32[m](index < 3); "
    "y[m, n] = sum[k](a[m, k] * q[e[m], n, k])",
    "floats of 8 bits": "q: float8_e4m3fn[n, k](packed); y[m, n] = sum[k](a[m, k] * q[n, k])",
}

pytestmark = pytest.mark.usefixtures("libraries")


def judged(work, right: str = "", wrong: str = "", final: bool = False):
    """Measure a kernel, in whose text ``wrong`` stands in the place of ``right``."""
    space, job = space_for(work, TARGET), Job("test", work, TARGET, final=final)
    builder, runner = PackingBuilder(NvrtcBuilder(TARGET)), CudaRunner(TARGET, OPENER, QUICK, 200)
    schedule = space.schedule(space.sample(np.random.default_rng(3), 8)[0])
    kernel = space.lower(schedule)
    assert right in kernel.source.body
    source = replace(kernel.source, body=kernel.source.body.replace(right, wrong))
    candidate = Candidate(job, schedule, replace(kernel, source=source))
    try:
        return runner.run(job, builder.build([candidate]))[0]
    finally:
        runner.close()
        builder.close()


@pytest.mark.parametrize("name", TEXTS)
def test_the_runner_judges_packed_codes(name: str) -> None:
    found = judged(workload(TEXTS[name], m=2, n=24, k=128))
    assert found.ok, found.error_text


def test_a_wrong_kernel_is_found_and_a_right_one_may_win() -> None:
    work = workload(TEXTS["experts"], m=2, n=24, k=128)
    assert judged(work, "shuffle_xor(sum, 2)", "shuffle_xor(sum, 1)").error_kind is ErrorKind.WRONG
    found = judged(work, final=True)
    assert found.ok, found.error_text

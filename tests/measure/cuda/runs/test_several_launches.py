"""A kernel of two launches: the first adds up parts of rows in its workspace, the second, which
reads what it also writes, adds these to the output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Role, Source
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.array import Array

PARTS = """\
  float sum = 0;
  for (int c = blockIdx.x; c < 40; c += 4) sum += tw::load_global(x + threadIdx.x * 40 + c);
  tw::store_global((float *)workspace + blockIdx.x * 32 + threadIdx.x, sum);
"""
TOTAL = """\
  float sum = tw::load_global(y + threadIdx.x);
  for (int p = 0; p < 4; p++) sum += tw::load_global((float *)workspace + p * 32 + threadIdx.x);
  tw::store_global(y + threadIdx.x, sum);
"""
X = np.random.default_rng(0).integers(-4, 5, (32, 40)).astype(np.float32)
Y = np.arange(32, dtype=np.float32)


def made(*names: str) -> Kernel:
    x, y = Array("x", "float32", (32, 40), (0, 1)), Array("y", "float32", (32,), (0,))
    given = (Argument(x, Role.IN), Argument(y, Role.IN_OUT))
    head = f"({parameters(given, workspace=True)})"
    bodies = zip(("parts", "total"), (PARTS, TOTAL), strict=True)
    texts = [f'extern "C" __global__ void {name}{head} {{\n{body}}}\n' for name, body in bodies]
    launch = {"parts": Launch((4, 1, 1), (32, 1, 1), shared_bytes=512)}
    launch["total"] = Launch((1, 1, 1), (32, 1, 1), entry="total")
    call = Call("parts", given, 512, launches=tuple(launch[name] for name in names))
    return Kernel(Source("cuda", "", "".join(texts)), call)


def early(waits: bool) -> Kernel:
    """The second launch may begin while the first one runs, and waits for it or not."""
    kernel = made("parts", "total")
    first, second = kernel.call.launches
    call = replace(kernel.call, launches=(first, replace(second, early=True)))
    body, start = kernel.source.body, "  float sum = tw::load_global(y"
    if waits:
        body = body.replace(start, f"  tw::await_launches();\n{start}")
    return replace(kernel, source=replace(kernel.source, body=body), call=call)


def test_an_early_launch_waits_before_it_reads():
    with Emulator() as emulator:
        found = emulator.run(early(waits=True), {"x": X, "y": Y})
        np.testing.assert_array_equal(found.outputs["y"], Y + X.sum(1))
    with Emulator() as emulator:
        found = emulator.run(early(waits=False), {"x": X, "y": Y})
        assert "load_global before await_launches()" in found.error_text


def test_parameters_are_constant_where_they_are_only_read():
    body = made().source.body
    assert "const float *__restrict__ x" in body
    assert "const float *__restrict__ y" not in body


@pytest.mark.parametrize("interleaving", INTERLEAVINGS, ids=str)
def test_a_launch_sees_what_the_one_before_it_left(interleaving):
    with Emulator() as emulator:
        found = emulator.run(made("parts", "total"), {"x": X, "y": Y}, interleaving)
        assert found.error_text == ""
        np.testing.assert_array_equal(found.outputs["y"], Y + X.sum(1))
        alone = emulator.run(made("total"), {"x": X, "y": Y}, interleaving)
        assert np.isnan(alone.outputs["y"]).all(), "the workspace holds anything"


def test_a_build_says_the_most_that_any_launch_takes():
    job = Job("several", workload("matmul m=32 n=32 k=32"), detect_target("cuda:sm_90a"))
    kernel = made("parts", "total")
    both = [kernel, replace(kernel, call=made("parts").call)]
    builder = NvrtcBuilder(job.target)
    try:
        built = builder.build([Candidate(job, Schedule("written", ()), k) for k in both])
    finally:
        builder.close()
    several, one = (b.info for b in built)
    assert several["shared_bytes"] == one["shared_bytes"] == 512
    assert several["registers"] >= one["registers"] > 0
    assert several["code_bytes"] > one["code_bytes"] > 0

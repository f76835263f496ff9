"""Candidates of a small product, and how they are run on an emulated GPU."""

from __future__ import annotations

from dataclasses import replace

from tests.kernels import written
from tests.measure.cuda.emulated_device import PackingBuilder
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.cuda.session import CHECKED
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.measure.timing import TimingProtocol
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Launch, arguments
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

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

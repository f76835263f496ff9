"""Kernels of programs with several outputs are judged, on the emulator and by the GPU's runner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels import written
from tests.measure.cuda.cuda_kernels import output_of
from tests.measure.cuda.emulated_device import EmulatedDevice, PackingBuilder
from tilewright.measure.cuda.emulator import Emulator, verify
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.problems import HostDraws
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.cuda.session import MeasuringSession
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.records.measurement import Candidate, ErrorKind, Job
from tilewright.measure.timing import TimingProtocol
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.kernel import Kernel, Launch, arguments
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
QUICK = TimingProtocol(samples=2, contender_samples=2)
WORK = workload(
    "x: float16[33,17]\ny[r,c] = x[r,c] * 2 + b[c]\ni[r] = argmax[c](x[r,c])\n-> y, i\n"
    "y: float16[33,17]\nb: float32[17]",
    r=33,
    c=17,
)
BODY = """
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r < 33) {
    int best = 0;
    for (int c = 0; c < 17; c++) {
      const float value = tw::to_float(tw::load_global(x + r * 17 + c));
      tw::store_global(y + r * 17 + c, tw::from_float<f16>(value * 2 + tw::load_global(b + c)));
      const float top = tw::to_float(tw::load_global(x + r * 17 + best));
      if (value > top || (value != value && top == top)) best = c;
    }
    tw::store_global(i + r, best);
  }
"""
MISTAKES = {
    "an element of the first": (("value * 2", "value * (2 + (r == 7))"), ErrorKind.WRONG, "y"),
    "a place": (("i + r, best", "i + r, best + (r == 32)"), ErrorKind.WRONG, "i"),
    "left unwritten": (("i + r, best", "i + r % 32, best"), ErrorKind.WRONG, "i"),
}


def made(name: str, body: str = BODY) -> Kernel:
    signature = parameters(arguments(WORK.inputs, WORK.outputs))
    source = f'extern "C" __global__ void {name}({signature}) {{{body}}}'
    launch = Launch((2, 1, 1), (32, 1, 1))
    return written("cuda", name, source, WORK.operands, launch, outputs=2)


def candidate(name: str, body: str = BODY) -> Candidate:
    return Candidate(
        Job("test", WORK, TARGET), Schedule("written", (("name", name),)), made(name, body)
    )


pytestmark = pytest.mark.usefixtures("libraries")


def test_the_emulator_judges_each_output():
    with Emulator() as emulator:
        found = verify(emulator, WORK, made("right"))
        assert found.error_kind is None, found.error_text
        assert found.outputs["i"].dtype == np.int32
        for name, ((old, new), kind, output) in MISTAKES.items():
            found = verify(emulator, WORK, made("wrong", BODY.replace(old, new)))
            assert found.error_kind is kind, name
            assert f"elements of {output} are wrong" in found.error_text


def test_the_runner_judges_each_output():
    bodies = {"right": BODY, "guard": BODY + "// writes beside its output\n"}
    bodies |= {f"wrong{n}": BODY.replace(*m[0]) for n, m in enumerate(MISTAKES.values())}
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    runner = CudaRunner(TARGET, "tests.measure.cuda.emulated_device:open_device", QUICK, 200)
    try:
        built = builder.build([candidate(name, body) for name, body in bodies.items()])
        assert all(b.binary is not None for b in built), [b.error_text for b in built]
        job = built[0].candidate.job
        right, guard, *wrong = runner.run(job, built)
        final, *_ = runner.run(replace(job, final=True), built[:1])
    finally:
        runner.close()
        builder.close()
    assert right.ok, right.error_text
    assert final.ok, final.error_text
    assert guard.error_kind is ErrorKind.OUT_OF_BOUNDS
    assert "after i" in guard.error_text
    for found, (_, kind, output) in zip(wrong, MISTAKES.values(), strict=True):
        assert found.error_kind is kind
        assert found.error_text.startswith(f"{output}["), found.error_text


def test_a_changed_input_is_told(emulator):
    operand = WORK.inputs[0]
    kernel = oracle.differing(operand, 3)
    values = WORK.make_inputs(1)["x"]
    spoilt = values.copy()
    spoilt[3, 4] += 1
    for found, right in ((values, (0, -1)), (spoilt, (1, 3 * 17 + 4))):
        arrays = {"x": found, oracle.copy_name(operand): values}
        report = output_of(emulator.run(kernel, arrays))
        assert oracle.count_and_first(report.tobytes()) == right


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as emulator:
        yield emulator


def test_one_problem_serves_a_search_and_a_final_has_its_own():
    host = HostDraws()
    device = EmulatedDevice()

    def inputs(seed: int, final: bool) -> np.ndarray:
        with MeasuringSession(device, WORK, seed, pulse_steps=1, final=final, host=host) as session:
            return session.array(WORK.inputs[0])

    first, again, final = inputs(1, False), inputs(2, False), inputs(3, True)
    assert (first == again).all()
    assert (first != final).any()
    assert (final != inputs(4, False)).any()
    assert not device._memory

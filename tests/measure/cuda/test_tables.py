"""Who may win on a GPU is checked on tables of every kind, and timed on the usual one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cuda.emulated_device import EmulatedDevice, PackingBuilder
from tests.measure.cuda.runs.small_runs import OPENER, QUICK, TARGET, candidate
from tilewright.measure.cuda.emulator import Emulator, verify
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.cuda.session import MeasuringSession
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.drawing.few_terms import LARGEST_ERROR
from tilewright.measure.drawing.programs import ProgramDraw
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.operators import workload

WORK = workload(
    '"e: int32[t](sorted < 4); l: int32[t](index < 41); where j < l[t]; '
    'y[t] = sum[j](x[t,j] * w[e[t],j])" t=67 j=40'
)
BODY = """
  const int t = blockIdx.x;
  int first = t, last = t;
  const int own = tw::load_global(e + t), count = tw::load_global(l + t);
  while (first > 0 && tw::load_global(e + first - 1) == own) first--;
  while (last < 66 && tw::load_global(e + last + 1) == own) last++;
  const int rows = last + 1 - first;
  float sum = 0;
  for (int j = 0; j < count; j++)
    sum += tw::load_global(x + t * 40 + j) * tw::load_global(w + own * 40 + j);
  if (threadIdx.x == 0) tw::store_global(y + t, sum + (WRONG));
"""
MISTAKES = {
    "a tail of 13 rows": "rows == 13 && t == first + 11",
    "a row beyond two tiles": "rows == 33 && t == last",
    "an empty segment before": "own > 1 && t == first && t && tw::load_global(e + t - 1) < own - 1",
    "everything in one": "rows == 67",
    "a length": "count == 29",
    "no length at all": "tw::load_global(l) + tw::load_global(l + 33) + count == 0",
}

pytestmark = pytest.mark.usefixtures("libraries")


def made(name: str, wrong: str = "0"):
    return candidate(name, BODY.replace("WRONG", f"{wrong} ? 9 : 0"), WORK)


def test_planted_bugs_are_always_found_and_the_others_timed():
    candidates = [made(f"bug{n}", wrong) for n, wrong in enumerate(MISTAKES.values())]
    candidates = [made("one"), *candidates, made("other")]
    builder = PackingBuilder(NvrtcBuilder(TARGET))
    runner = CudaRunner(TARGET, OPENER, QUICK, least_seconds=200)
    try:
        built = builder.build(candidates)
        job = replace(candidates[0].job, final=True, thorough=True)
        one, *wrong, other = runner.run(job, built)
        assert one.ok, one.error_text
        assert other.ok, other.error_text
        assert one.score
        assert [m.error_kind for m in wrong] == [ErrorKind.WRONG] * len(wrong)
        assert any("elements wrong, other inputs " in m.error_text for m in wrong)
    finally:
        runner.close()
        builder.close()


def test_the_emulator_finds_them_too():
    with Emulator() as emulator:
        assert verify(emulator, WORK, made("right").kernel).error_kind is None
        for number, wrong in enumerate(MISTAKES.values()):
            found = verify(emulator, WORK, made(f"wrong{number}", wrong).kernel)
            assert found.error_kind is ErrorKind.WRONG, wrong


def test_the_first_problem_is_back_in_the_end():
    names = ("e", "l")
    operands = [o for o in WORK.inputs if o.name in names]
    with MeasuringSession(EmulatedDevice(), WORK, 1, pulse_steps=1) as session:
        before = [session.array(o).tolist() for o in operands]
        seen = [[session.array(o).tolist() for o in operands] for _ in session.other_inputs()]
        assert len(seen) > 8
        assert sum(tables != before for tables in seen) > 8
        assert [session.array(o).tolist() for o in operands] == before


LONG = workload('"y[i] = sum[j](x[i,j])" i=3 j=131072')


def test_long_sums_have_other_inputs_too():
    """Four of five are zeros, as many as it takes for one of the others to show that is left out.
    They are uploaded, and what is allowed of them is worked out."""
    (x,), (y,) = LONG.inputs, LONG.outputs
    bounds = oracle.allowed_operand(y)
    with MeasuringSession(EmulatedDevice(), LONG, 1, pulse_steps=1) as session:
        before = session.array(x), session.array(bounds)
        for name in session.other_inputs():
            if name != "other inputs 1":
                continue
            values = session.array(x)
            assert 0.79 < np.mean(values == 0) < 0.81
            low, high = session.array(bounds)
            wide, usual = high - low, before[1][1] - before[1][0]
            assert (wide < usual / 3.5).all()  # small terms count as larger ones, so it is not 5
            exact = values.sum(axis=1, dtype=np.float64)
            assert ((low <= exact) & (exact <= high)).all()
            without = exact[:, None] - values
            found = (without < low[:, None]) | (without > high[:, None])
            assert found[abs(values) > LARGEST_ERROR * 1.1].all()
        after = session.array(x), session.array(bounds)
        assert all(map(np.array_equal, before, after))


def test_products_that_the_device_draws_have_edges():
    """They are made on the host from what the device has drawn, which is back in the end."""
    work = workload("matmul m=45 n=33 k=20 dtype=float16 b=col epilogue=relu(x)")
    bounds = oracle.allowed_operand(work.outputs[0])
    with MeasuringSession(EmulatedDevice(), work, 1, pulse_steps=1) as session:
        arrays = (*work.inputs, bounds)
        before = [session.array(array) for array in arrays]
        names = []
        for name in session.other_inputs():
            names.append(name)
            found = [session.array(array) for array in arrays]
            draw = ProgramDraw(work, dict(zip(("A", "B"), found, strict=False)))
            (right,) = draw.allowed().values()
            judged = ~np.isinf(found[2]) | np.isnan(found[2])
            assert judged.mean() > 0.5
            assert np.allclose(found[2][judged], np.stack(right)[judged], 1e-5, equal_nan=True)
            assert np.isnan(found[2]).any()
        assert names == ["values out of the ordinary"]
        assert all(map(np.array_equal, before, [session.array(array) for array in arrays]))

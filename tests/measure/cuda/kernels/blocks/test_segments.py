"""Products whose rows come in segments, on GPUs: any table is served, and nothing else is read.

Every kernel runs on the emulator in eager, lazy and two random orders.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case
from tests.measure.cuda.kernels.blocks.segment_cases import (
    BUGS,
    CASES,
    TEMPLATES,
    space_of,
    text_of,
)
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.tables import inputs_of
from tilewright.measure.cuda.cubin import read_cubin
from tilewright.measure.cuda.emulator import Emulator, Interleaving
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.sass import count
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import TemplateContract


class _Contract(TemplateContract):
    kind = ""

    def served(self):
        names = ("fused", "more groups than rows")
        return [
            (workload(text_of(name, TEMPLATES[self.kind][1])), cuda_target("sm_80"))
            for name in names
        ]

    def refused(self):
        return [(workload(text), cuda_target("sm_80")) for text, _ in REFUSED]


class TestMma(_Contract):
    template, kind = Mma, "mma"


class TestSimt(_Contract):
    template, kind = Simt, "simt"


class TestHopper(_Contract):
    template, kind = Hopper, "hopper"

    def served(self):
        texts = (f"grouped_matmul t={t} n=264 k=72 experts=6 dtype=bfloat16" for t in (37, 700))
        return [(workload(text), cuda_target("sm_90a")) for text in texts]


@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("name", ["one after the other", "other names"])
def test_random_schedules_agree_with_the_reference(name, kind):
    template, dtype = TEMPLATES[kind]
    space = space_of(text_of(name, dtype), template)
    verdicts = emulate(space, draw(space, 1, 1))
    assert all(verdict.right for verdict in verdicts), verdicts


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEMPLATES)
@pytest.mark.parametrize("name", ["fused", "transposed weights", "other names", "one group"])
def test_many_more_schedules_agree_with_the_reference(name, kind):
    template, dtype = TEMPLATES[kind]
    space = space_of(text_of(name, dtype), template)
    verdicts = emulate(space, draw(space, 8, 2))
    assert all(verdict.right for verdict in verdicts), verdicts


def complaint(emulator: Emulator, case: Case) -> str:
    """What is wrong with a kernel's results with some table, threads in another order with each;
    nothing with any if it is empty."""
    tables = enumerate(inputs_of(case[0]), start=1)
    return next(filter(None, (_complaint(emulator, case, given, n) for n, given in tables)), "")


def _complaint(emulator: Emulator, case: Case, given: Mapping[str, np.ndarray], seed: int) -> str:
    made, kernel = case
    result = emulator.run(kernel, given, Interleaving("random", seed))
    if result.error_kind is not None:
        return f"{result.error_kind}: {result.error_text}"
    bounds = allowed(made.program, given)
    wrong = [name for name in bounds if not agrees(result.outputs[name], *bounds[name]).all()]
    return f"{wrong} with {given}" if wrong else ""


class TestAnyTable(KernelContract):
    """Every table is served, and some table shows each bug."""

    cases, bugs = CASES, BUGS

    def complaint(self, emulator, case, orders=(), turn=None):
        return complaint(emulator, case)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_segments_of_rows_that_lie_side_by_side_begin_anywhere(dtype):
    """What a tile has of them is not aligned."""
    text = '"t: int32[i](sorted < 5); y[i,j] = sum[k](x[k,i] * u[t[i],k,j])" i=128 j=24 k=40'
    space = space_for(workload(f"{text} dtype={dtype}"), cuda_target("sm_80"))
    verdicts = list(emulate(space, draw(space, 2 * len(space.templates), 1)))
    assert all(v.right for v in verdicts), verdicts


@pytest.mark.parametrize("entry", [-1, 7, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("name", ["mma gathered", "simt", "hopper, staged"])
def test_a_wild_table_leads_to_no_wild_access(emulator, name, entry):
    made, kernel = CASES[name]
    drawn = made.make_inputs(0)
    for table in ("expert", "row"):
        if table in drawn:
            drawn[table][::3] = entry
    result = emulator.run(kernel, drawn)
    assert result.error_kind is None, result.error_text


REFUSED = [
    (
        '"e: int32[i](index < 3); y[i,j] = sum[k](x[i,k] * w[e[i],k,j])" i=9 j=5 k=4',
        "w is read at e[i]",
    ),
    (
        '"e: int32[i](sorted < 3); y[i,h,j] = sum[k](x[i,h,k] * w[e[i],k,j])" i=9 h=2 j=5 k=4',
        "i, in segments of e, is not all of the batch and of the rows",
    ),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_refusals_say_why(text, words):
    assert words in (Mma.refuses(workload(text), cuda_target("sm_80")) or "")


def test_a_launch_has_room_for_any_table_and_is_judged_by_drawn_ones():
    space = space_of("grouped_matmul t=512 n=64 k=64 experts=64 dtype=float16", Mma)
    rows = space.sample(np.random.default_rng(0), 10)
    quantities = space.quantities(rows)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()
    for row, visits in zip(rows, quantities["tile_visits"], strict=True):
        schedule = space.schedule(row)
        high = int(schedule.values["tile_rows"]) * int(schedule.values["warp_rows"])
        wide = -(
            -64 // (int(schedule.values["tile_columns"]) * int(schedule.values["warp_columns"]))
        )
        x, splits, _ = space.lower(schedule).call.launches[0].grid
        assert x >= (512 // high + 64) * wide
        assert visits <= x * splits


def test_hopper_brings_segments_by_tma_and_spills_nothing():
    target = cuda_target("sm_90a")
    made = workload("grouped_matmul t=512 n=14336 k=4096 experts=8 b=col dtype=bfloat16")
    space = Space(made, target, [Hopper(made, target)])
    builder = NvrtcBuilder(target)
    for schedule in draw(space, 3, 1):
        kernel = space.lower(schedule)
        [built] = builder.build([Candidate(Job("test", made, target), schedule, kernel)])
        assert built.binary is not None, built.error_text
        found = count(read_cubin(built.binary.read_bytes(), kernel.call.entry).code)
        assert found["UTMALDG"] >= 2, schedule
        assert found["HGMMA"], schedule
        assert found["LDL"] == found["STL"] == 0, schedule
    builder.close()

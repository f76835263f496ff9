"""Kernels that are wrong at the edge alone are found where who may win is checked."""

from __future__ import annotations

import re

import pytest

from tests.kernels import rewritten
from tests.measure.cpu.test_tables import TARGET, measured
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.verification import draw
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

SOFTMAX, NORM = "softmax r=64 c=1000", "layernorm r=64 c=1000"
MAXIMUM = r"tw_set\(tw_across_max\((s0_\d)\)\)"
MUTANTS = {  # name: (workload, decisions, what is replaced everywhere, by what)
    "no maximum": (SOFTMAX, {}, MAXIMUM, "tw_set(0.0f)"),
    "no maximum, online": (SOFTMAX, {"passes": "online"}, MAXIMUM, "tw_set(0.0f)"),
    "the first element for the maximum": (SOFTMAX, {}, MAXIMUM, "tw_set(p0[0])"),
    "the minimum": (
        SOFTMAX,
        {"passes": "plain"},
        r"tw_across_max\((s0_\d)\)",
        r"-tw_across_max(-\1)",
    ),
    "one lane's maximum": (SOFTMAX, {}, MAXIMUM, r"tw_set(\1[0])"),
    "a correction of 2 % more": (
        SOFTMAX,
        {"passes": "online", "unroll": 1},
        r"tw_exp\(-\((n\w+ - o\w+)\)\)",
        r"tw_exp((\1) * TW_NUMBER(-1.02))",
    ),
    "no maximum of a loss": ("cross_entropy r=64 c=1000", {}, MAXIMUM, "tw_set(0.0f)"),
    "a count of 1 % less": (NORM, {"passes": "online"}, r"n0_0 / n0_1", "n0_0 / (n0_1 * 0.99f)"),
    "no guard of -inf": (SOFTMAX, {"passes": "online"}, r"tw_begun_max\((\w+)\)", r"\1"),
    "a contracted subtraction": (
        '"m[r] = max[c](x[r,c] * x[r,c]); y[r,c] = sqrt(m[r] - x[r,c] * x[r,c])" r=40 c=300',
        {"lanes": "columns"},
        r"g0_0 - x(\d)_1",
        r"tw_fma(-x\1_0, x\1_0, g0_0)",
    ),
    "a product of indices in 32 bits": (
        '"z: float32[5000]; y[i,j] = z[(i*16000001 + j) // 1000003]" i=300 j=200',
        {},
        r"16000001L \* a0\)",
        "(unsigned)(16000001u * (unsigned)a0))",
    ),
    "hidden elements times zero": (
        "attention b=1 h=2 i=70 j=100 d=64 mask=causal",
        {"rows": 16},
        r"while \(!careful && hidden",
        "while (0",
    ),
    "a hidden element times zero": (
        '"where k <= 2 * j; y[i,j] = sum[k](x[i,k])" i=40 j=60 k=60',
        {"lanes": "columns"},
        r"tw_select\((x\d_0 <= g0_1), (x\d_1), TW_NUMBER\(0.0\)\)",
        r"(\2 * tw_select(\1, tw_set(1.0f), tw_set(0.0f)))",
    ),
    "a mean of 1 % more": (NORM, {"passes": "plain"}, r"TW_NUMBER\(1000.0\)", "TW_NUMBER(990.0)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    text, decisions, pattern, replacement = MUTANTS[name]
    work = workload(text)
    space = space_for(work, TARGET)
    kernels = []
    for schedule in draw(space, 40, 0):
        if decisions.items() <= schedule.values.items():
            kernel = space.lower(schedule)
            body, number = re.subn(pattern, replacement, kernel.source.body)
            if number:
                kernels += [kernel, rewritten(kernel, body, f"mutant{len(kernels)}")]
    assert kernels
    found = measured(work, kernels[:8], thorough=True)
    assert [m.error_text for m in found[::2] if m.score is None] == []  # right ones may be slow
    assert all(m.error_kind is ErrorKind.WRONG for m in found[1::2])

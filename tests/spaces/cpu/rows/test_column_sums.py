"""Kernels of rows with sums along columns beside them: norms' gradients by their weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    check_sampled,
    compile_kernels,
    complaint,
    sampled,
)
from tilewright.spaces.cpu.rows.template import RowsTemplate
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=3, cores=3)
SUMMED = "m[r] = max[c](x[r,c])\ny[r,c] = x[r,c] - m[r]\n"
GRADIENTS = {
    "layernorm": ("layernorm r=70 c=53", "x,weight,bias", "mean,rstd"),
    "layernorm with nothing saved": ("layernorm r=9 c=40", "x,weight,bias", ""),
    "rmsnorm": ("rmsnorm r=5 c=131", "x,weight", ""),
    "bfloat16": ("layernorm r=70 c=32 dtype=bfloat16", "x,weight,bias", "mean,rstd"),
}
OTHERS = {
    "several axes": f"{SUMMED.replace('r', 'b,r')}z[c] = sum[b,r](x[b,r,c] * m[b,r])\n-> y, z",
    "float64": f"x: float64\n{SUMMED}z[c] = sum[r](y[r,c] * y[r,c])\n-> y, z",
    "a sum alone": "m[r] = max[c](x[r,c])\nz[c] = sum[r](x[r,c] - m[r])",
}


def asked(name: str) -> Workload:
    if name in GRADIENTS:
        return workload_of(gradient(*GRADIENTS[name]))
    extents = {"r": 140, "c": 37} | ({"b": 2} if name == "several axes" else {})
    return Workload("program", (), program(OTHERS[name], **extents), "")


def space_of(made: Workload) -> Space:
    return Space(made, TARGET, [RowsTemplate(made, TARGET)])


@pytest.mark.parametrize("name", [*GRADIENTS, *OTHERS])
def test_kernels_agree(name: str, tmp_path: Path) -> None:
    check_sampled(space_of(asked(name)), 3, 1, tmp_path)


def test_a_gradient_of_a_norm_is_one_kernel() -> None:
    assert list(space_for(asked("layernorm"), TARGET).templates) == ["rows"]


def test_rows_of_other_sums_are_refused_as_before() -> None:
    for text in ("softmax r=8 c=8", "sum shape=8x8 over=0"):
        assert not space_of(workload(text)).templates["rows"].rows.sums  # type: ignore[attr-defined]


def test_sums_of_many_equal_terms_keep_their_digits(tmp_path: Path) -> None:
    made = Workload("program", (), program(OTHERS["a sum alone"], r=30_000, c=8), "")
    inputs = {"x": np.full((30_000, 8), 0.1, np.float32)}
    inputs["x"][:, 0] = 0.4
    kernels = sampled(space_of(made), 2)
    library = compile_kernels(kernels, TARGET, tmp_path)
    assert {complaint(kernel, library, made, 0, inputs) for kernel in kernels} == {""}


BUGS = {
    "sums_of_one_worker": (r"worker < 3", "worker < 2"),
    "arrays_not_cleared": (r"sums\[c\] = 0;", ";"),
    "a_block_lost": (r"if \(\+\+added0 == \d+\) \{", r"\g<0> for (long c = 0; c < 9; c++) "
                     r"sum0_0[c] = 0;"),
    "the_last_block_not_moved": (r"(?s)(added1 = 0;.*)sum0_1\[c\] \+= sum0_0\[c\];", r"\1"),
    "two_sums_mixed": (r"sum1_0 \+ 0", "sum0_0 + 0"),
}  # fmt: skip


def test_planted_bugs_are_found(tmp_path: Path) -> None:
    made = workload_of(gradient("layernorm r=300 c=53", "x,weight,bias", "mean,rstd"))
    space = space_of(made)
    schedule = next(s for s in space.enumerate() if s.values["workers"] == 3)
    check_bugs_are_found(space.lower(schedule), BUGS, made, TARGET, tmp_path)

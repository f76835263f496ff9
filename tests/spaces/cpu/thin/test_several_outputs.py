"""Products of few rows that write their sums and what is computed of them."""

from __future__ import annotations

import dataclasses
from itertools import islice

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, check_sampled, compile_kernels, complaint
from tests.spaces.several_outputs import BUGS_IN_C, LINEAR, PROGRAMS, made
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.thin.template import Thin, ThinDots, ThinStream
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload_from_json
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities
from tilewright.spaces.workloads.workload import Workload

ROWS_OF_B = LINEAR.replace("b: float32[j, k]", "b: float32[k, j]").replace("b[j, k]", "b[k, j]")
LAYERS = {ThinDots: LINEAR, ThinStream: ROWS_OF_B}


def threads(count: int) -> CpuTarget:
    return dataclasses.replace(this_cpu(), threads=count, cores=count)


def space_of(work: Workload, target: CpuTarget) -> Space:
    (template,) = (t for t in (ThinDots, ThinStream) if t.refuses(work, target) is None)
    return Space(work, target, [template(work, target)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_outputs_agree_with_the_reference(name, tmp_path):
    few = {"j": 5} if name == "columns first" else {"i": 5}
    check_sampled(space_of(made(PROGRAMS[name], **few), threads(1)), 4, 0, tmp_path)


@pytest.mark.parametrize("template", LAYERS)
def test_workers_who_share_the_depth_write_all_outputs_once(template, tmp_path):
    work = made(f"{LAYERS[template]}; -> t, y", i=3, k=700)
    space = space_of(work, threads(4))
    found = (s for s in space.enumerate() if s["depth_workers"] == 4 and s["column_workers"] == 1)
    kernels = [space.lower(schedule) for schedule in islice(found, 2)]
    library = compile_kernels(kernels, threads(4), tmp_path)
    assert [complaint(kernel, library, work, 0) for kernel in kernels] == ["", ""]


@pytest.mark.parametrize("rows", [5, 33])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_packed_weights_give_all_outputs(dtype, rows, tmp_path):
    if dtype == "bfloat16" and not this_cpu().bf16_dot:
        pytest.skip("no instruction for dot products of bfloat16 here")
    packed = LINEAR.replace("b: float32[j, k]", "b: float32[j, k](packed)").replace(
        "a: float32[i, k]; b: float32", f"a: {dtype}[i, k]; b: {dtype}"
    )
    work = made(f"{packed}; t: float32[i, j]; y: float32[i, j]; -> t, y", i=rows, k=38)
    assert workload_from_json(work.to_json()) == work
    space = space_for(work, threads(2))
    assert list(space.templates) == ["thin_packed" if rows == 5 else "contraction"]
    check_sampled(space, 4, 0, tmp_path)


def test_a_packed_operand_that_is_no_matrix_of_the_product_is_refused():
    text = LINEAR.replace("c: float32[j]", "c: float32[i, j](packed)").replace("c[j]", "c[i, j]")
    with pytest.raises(InputError, match="c is packed; allowed: one matrix of a product"):
        made(f"{text}; -> t, y")


FIXED = {"tile_rows": 3, "block_depth": 1024, "prefetch": 0, "unroll": 1, "pack_left": False}
FIXED |= {"tile_columns": 3, "column_workers": 1, "depth_workers": 1}
BUGS = BUGS_IN_C | {
    "rows of the second output are those of the first": (r"e_y \+ 50 \* ", "e_y + 37 * "),
    "the second output begins a row late": (r", e_y \+ ", ", e_y + 50 + "),
}


def test_every_planted_bug_is_found(tmp_path):
    target = dataclasses.replace(
        threads(1), isa="generic", vector_bytes=16, bf16_dot=False, flags=("-O0",)
    )
    work = made(PROGRAMS["a slice"], i=5)
    template = ThinDots(work, target)
    chosen = tuple((d.name, FIXED[d.name]) for d in template.decisions)
    right = template.lower(Schedule("thin_dots", chosen))
    check_bugs_are_found(right, BUGS, work, target, tmp_path)


@pytest.mark.parametrize("template", LAYERS)
def test_quantities_count_what_is_written_twice(template):
    work = made(f"{LAYERS[template]}; -> t, y", i=5)
    one = made(LAYERS[template].partition(" t[")[0] + " y[i, j] = gelu(s[i, j] + c[j])", i=5)
    counted = [
        checked_quantities(space_of(each, threads(1)), seed=0, schedules=30) for each in (work, one)
    ]
    elements, bytes_ = (
        [q[name].min() for q in counted] for name in ("epilogue_elements", "main_bytes")
    )
    assert elements[0] == 2 * elements[1] == 2 * 5 * 37
    assert bytes_[0] == bytes_[1] + 4 * 5 * 37


@pytest.mark.parametrize("template", LAYERS)
def test_no_axis_of_several_outputs_is_open(template):
    work = made(f"{LAYERS[template]}; -> t, y", i=5)
    space = space_of(work, threads(1))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    (served,) = space.templates.values()
    assert isinstance(served, Thin)
    assert served.why_not_open(schedule, "i") == "several arrays are written"

"""Products that write their sums and what is computed of them, by templates of blocks."""

from __future__ import annotations

import dataclasses

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, check_sampled
from tests.spaces.several_outputs import BUGS_IN_C, LINEAR, PROGRAMS, made
from tilewright.spaces.cpu.blocked.template import BlockedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.windows.template import WindowsTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.template import Template
from tilewright.spaces.testing.template import checked_quantities
from tilewright.spaces.workloads.workload import Workload

IMAGE = (
    "axes n=2, o=19, p=6, q=7, c=5, r=3, s=3; x: float32[n, c, 8, 9]; w: float32[o, c, r, s]; "
    "t[n, o, p, q] = sum[c, r, s](x[n, c, p + r, q + s] * w[o, c, r, s]); "
    "y[n, o, p, q] = gelu(t[n, o, p, q]); -> t, y"
)


def machine(**changes: int) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(this_cpu(), **{"threads": 1, **caches, **changes})


def space_of(work: Workload, template: type[Template], target: CpuTarget) -> Space:
    assert template.refuses(work, target) is None
    return Space(work, target, [template(work, target)])


@pytest.mark.parametrize("template", [BlockedTemplate, WindowsTemplate])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_outputs_agree_with_the_reference(name, template, tmp_path):
    check_sampled(space_of(made(PROGRAMS[name]), template, machine()), 4, 0, tmp_path)


def test_images_and_their_values_agree_with_the_reference(tmp_path):
    check_sampled(space_of(workload(IMAGE), WindowsTemplate, machine()), 4, 0, tmp_path)


@pytest.mark.parametrize("template", [BlockedTemplate, WindowsTemplate])
def test_workers_share_all_outputs(template, tmp_path):
    target = machine(threads=6, cores=6)
    check_sampled(space_of(made(PROGRAMS["a linear layer"]), template, target), 4, 1, tmp_path)


FIXED = {"tile_rows": 3, "tile_vectors": 2, "order": "rows_outer", "unroll": 1}
FIXED |= {"row_workers": 1, "column_workers": 1, "batch_workers": 1, "multiply": "fma"}
FIXED |= {"pack_left": False, "pack_right": True, "prefetch": False, "block_columns": 64}
BLOCKED = {"block_depth": 256, "block_rows": 32}
BUGS = BUGS_IN_C | {
    "the second output has the leading dimension of the first": (r"e_y \+ 50 \* ", "e_y + 37 * "),
    "the second output is written over the first one": (r"\(e_y \+ 50", "(c + 37"),
    "blocks of the second output begin at the first row": (
        r"e_y \+ 50 \* row0 \+ 50 \* i\b",
        "e_y + 50 * row0",
    ),
}


def test_every_planted_bug_is_found(tmp_path):
    target = dataclasses.replace(
        machine(vector_bytes=16), isa="generic", bf16_dot=False, flags=("-O0",)
    )
    work = made(PROGRAMS["a slice"])
    template = BlockedTemplate(work, target)
    values = FIXED | BLOCKED
    chosen = tuple((d.name, values[d.name]) for d in template.decisions)
    right = template.lower(Schedule("contraction", chosen))
    check_bugs_are_found(right, BUGS, work, target, tmp_path)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ("t: float32[i, j](order=(1, 0)); -> t, y", "outputs lie in different orders; needs one"),
        ("z[i] = sum[j](y[i, j]); -> y, z", "needs one product of matrices"),
    ],
)
def test_refusals_say_why(outputs, words):
    work = made(f"{LINEAR}; {outputs}")
    reasons = [t.refuses(work, this_cpu()) for t in (BlockedTemplate, WindowsTemplate)]
    assert words in str(reasons[0])
    assert all(reasons)


def test_what_is_read_along_two_axes_is_refused_by_blocks_and_served_by_windows(tmp_path):
    text = "c: float32[j]; t[i, j] = sum[k](a[i, k] * b[j, k])"
    outputs = "y[i, j] = t[i, j] + c[i]; z[i, j] = t[i, j] * c[j]; -> y, z"
    work = workload(f"{text}; {outputs}", i=33, j=33, k=9)
    words = "c is read along different axes; needs the same for all outputs"
    assert BlockedTemplate.refuses(work, machine()) == words
    check_sampled(space_of(work, WindowsTemplate, machine()), 2, 0, tmp_path)


@pytest.mark.parametrize("template", [BlockedTemplate, WindowsTemplate])
def test_quantities_count_what_is_written_twice(template):
    work = made(PROGRAMS["a linear layer"])
    one = made(LINEAR.partition(" t[")[0] + " y[i, j] = gelu(s[i, j] + c[j])")
    counted = [
        checked_quantities(space_of(each, kind, machine()), seed=0, schedules=30)
        for each, kind in ((work, template), (one, BlockedTemplate))
    ]
    written = [quantities["epilogue_elements"].min() for quantities in counted]
    assert written[0] >= 2 * 33 * 37
    assert written[0] == 2 * written[1]
    assert counted[0]["main_bytes"].min() > counted[1]["main_bytes"].min()

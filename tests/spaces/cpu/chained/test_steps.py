"""Scores of a CPU whose keys are packed a tile at a time, in steps of their depth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.chained_programs import made
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tilewright.spaces.cpu.chained.template import ChainedTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)
PRODUCT = "z[i,j] = sum[d](x[i,d] * w[j,d])\n"
FORMS = {
    "loss": f"l: int32[i](index < 131)\n{PRODUCT}y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]",
    "routing": f"{PRODUCT}y[i] = argmax[j](z[i,j])",
    "weighed": "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * w[d,j]) * 0.02) * v[j,e])",
    "masked": f"where j <= 3 * i + 20\n{PRODUCT}"
    "y[i,e] = sum[j](softmax[j](z[i,j] * 0.02) * v[j,e])",
}


def computation(name: str, dtype: str = "float32", depth: int = 1091) -> Workload:
    program = made(FORMS[name], dtype, i=37, j=131, d=depth, e=19)
    return Workload("program", (), program, "")


def stepped(w: Workload, count: int) -> list[Kernel]:
    """Kernels of some schedules that pack in steps."""
    space = Space(w, TARGET, [ChainedTemplate(w, TARGET)])
    drawn = map(space.schedule, space.sample(np.random.default_rng(0), 100))
    found = dict.fromkeys(s for s in drawn if s.values["key_layout"] == "steps")
    return [space.lower(s) for s in list(found)[:count]]


def usual(w: Workload) -> Kernel:
    """The kernel of a tile of four vectors of keys, for eight rows."""
    values: dict[str, Value] = {
        "rows": 8, "keys": 4 * TARGET.lanes(4), "key_layout": "steps", "value_layout": "in_place",
        "score_rows": 4, "score_vectors": 1, "value_rows": 4, "value_vectors": 1, "unroll": 1,
        "workers": 2, "splits": 1,
    }  # fmt: skip
    space = Space(w, TARGET, [ChainedTemplate(w, TARGET)])
    return space.lower(Schedule("chained", tuple(values.items())))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FORMS)
def test_forms_agree_with_their_unfused_programs(name, dtype, tmp_path):
    w = computation(name, dtype)
    kernels = stepped(w, 4)
    assert len(kernels) == 4
    library = compile_kernels(kernels, TARGET, tmp_path)
    assert [found for k in kernels if (found := complaint(k, library, w, 1, None))] == []


@pytest.mark.parametrize(("depth", "offered"), [(1023, False), (1024, True)])
def test_a_depth_of_less_than_two_steps_is_packed_as_a_whole(depth, offered):
    template = ChainedTemplate(computation("loss", depth=depth), TARGET)
    (scores,) = (d.values for d in template.decisions if d.name == "key_layout")
    assert ("steps" in scores) == offered


def test_what_is_packed_is_a_step_of_a_tile():
    """By each of two workers; all keys would be 131 times 8,192 elements."""
    keys = 4 * TARGET.lanes(4)
    kernel = usual(computation("loss", depth=8192))
    assert kernel.call.workspace_bytes < 4 * (keys * 512 + 8 * 8192 + 8 * keys) * 2.4


BUGS = {
    "the_last_step_is_left_out": (r"(d < )1091(; d \+=)", r"\g<1>1024\2"),
    "steps_do_not_add_up": (r"terms, d > 0\)", "terms, 0)"),
    "scores_of_the_tile_before_count": (r"terms, d > 0\)", "terms, tile + d > 0)"),
    "keys_of_the_first_step": (r" \+ d \* 1L, packed", ", packed"),
    "rows_of_the_first_step": (r"(left \+ r \* \d+) \+ d", r"\1"),
    "the_last_step_has_too_few_terms": (r"tw_least\(512, 1091 - d\)", "tw_least(512, 1088 - d)"),
    "keys_of_the_first_tile": (r"\+ tile \* 1091L \+ d", "+ 0 * tile + d"),
    "the_first_panel_for_all": (r"packed \+ v \* 512", "packed + 0 * v"),
}


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name, tmp_path):
    w = computation("loss")
    inputs = [w.make_inputs(0)]
    check_bugs_are_found(usual(w), {name: BUGS[name]}, w, TARGET, tmp_path, inputs, count=0)

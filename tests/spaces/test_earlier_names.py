"""Earlier names of decisions lead to those of today, and only those of our templates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.spaces.test_templates import WORKLOADS
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.earlier_names import (
    RENAMED,
    TEMPLATES,
    present_decisions,
    present_feature,
    present_name,
    present_schedule,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.targets import made_up_cpu

TARGETS = (made_up_cpu(threads=4), cuda_target("sm_80"), cuda_target("sm_90a"))
RARE = [
    workload("attention b=2 h=4 i=512 j=512 d=64 mask=causal dtype=float8_e4m3fn"),
    workload("matmul m=512 n=384 k=512 dtype=float8_e4m3fn b=col"),
    workload("matmul m=64 n=16384 k=16384 dtype=bfloat16 b=col"),
    workload("grouped_matmul t=512 n=256 k=256 experts=4 dtype=bfloat16 b=col"),
    workload("y[j, i] = x[i, j]", i=4096, j=4096),
]
"""Workloads with decisions that few have."""


@cache
def decisions() -> set[tuple[str, str]]:
    """The template and the name of each decision of some workload."""
    return {
        (template.name, decision.name)
        for target in TARGETS
        for work in (*WORKLOADS, *RARE)
        for template in templates_for(target)
        if template.why_not(work, target) is None
        for decision in template(work, target).decisions
    }


def test_no_template_has_a_decision_of_an_earlier_name():
    changed = [each for each in decisions() if present_name(*each) != each[1]]
    assert changed == []


def test_renaming_twice_changes_nothing():
    assert not RENAMED.keys() & set(RENAMED.values())


def test_each_name_of_today_is_a_decision_of_a_template():
    assert set(RENAMED.values()) <= {name for _, name in decisions()}


def test_every_template_with_a_new_name_is_listed():
    new = {template for template, name in decisions() if name in set(RENAMED.values())}
    had_them = {"contraction", "thin_stream", "thin_dots", "thin_packed"}
    came_later = {
        *("chunked", "low_bit_dots", "low_bit_raised", "low_bit_ring"),
        *("pairwise", "ragged_turned", "recurrent", "scan"),
    }
    assert new - had_them - came_later <= TEMPLATES


def test_decisions_keep_their_order_and_values():
    earlier = {"split": 2, "merge": "last", "keys": 64, "residency": 1}
    today = [("splits", 2), ("merge", "last"), ("keys", 64), ("blocks_per_sm", 1)]
    assert list(present_decisions("chained", earlier).items()) == today


def test_numbers_of_kernels_stay():
    assert present_name("staged_loops", "hold_2") == "row_storage_2"
    assert present_name("packed", "tile_rows_1") == "tile_rows_1"
    assert present_name("rows", "hold_2") == "hold_2"


def test_templates_of_others_keep_their_names():
    assert present_name("mine", "split") == "split"
    assert present_feature("mine.split") == "mine.split"
    assert present_feature("kept.split") == "kept.splits"
    assert present_feature("schedule.registers") == "schedule.registers"


@pytest.mark.parametrize(
    "schedule",
    [None, [], {}, {"template": 3, "decisions": {}}, {"template": "rows", "decisions": [1]}],
)
def test_what_is_no_schedule_stays_as_it_is(schedule):
    assert present_schedule(schedule) == schedule


def test_a_schedule_with_an_earlier_name_is_told_the_name_of_today():
    work, target = workload("attention b=2 h=2 i=40 j=40 d=16"), TARGETS[0]
    [template] = [t for t in templates_for(target) if t.name == "chained"]
    space = Space(work, target, [template(work, target)])
    [row] = space.sample(np.random.default_rng(0), 1)
    today = space.schedule(row)
    earlier = [("split" if name == "splits" else name, value) for name, value in today.decisions]
    with pytest.raises(InputError, match="'split' is not one of chained; did you mean splits"):
        space.lower(Schedule("chained", tuple(earlier)))

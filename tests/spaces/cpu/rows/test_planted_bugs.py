"""Bugs planted in the C of rows are found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.native import check_bugs_are_found
from tests.spaces.cpu.rows.checked_rows import TARGET, space_of
from tilewright.spaces.operators import workload

BUGS = [  # name: (operator, decisions, what is replaced in the source, by what)
    ("tail_mask", "softmax", {}, r"tw_first\(", "tw_first(1 + "),
    (
        "tile_correction",
        "softmax",
        {"passes": "online"},
        r"s0_1 \* tw_lesser\(.*\(n\w+ - o\w+\)\)\)",
        "s0_1",
    ),
    (
        "lane_correction",
        "softmax",
        {"passes": "online"},
        r"s0_1 \* tw_lesser\(.*?\(f\w+ - l\w+\)\)\)",
        "s0_1",
    ),
    ("inverted", "logsumexp", {"passes": "online"}, r"\((n0_\d) - (o0_\d)\)", r"(\2 - \1)"),
    ("moment", "layernorm", {"passes": "online"}, r"s0_2 \+ \(n0.*o0_1\)", "s0_2)"),
    ("one_lane", "sum", {}, r"tw_across_sum\((\w+)\)", r"\1[0]"),
    ("last_row", "sum", {}, r"3 \* worker", "4 * worker"),
    ("last_of_equals", "argmax", {}, r"tw_above\((\w+), (\w+)\)", r"~tw_above(\2, \1)"),
    (
        "held_elsewhere",
        "softmax",
        {"intermediates": "scratch"},
        r"tw_store_float32\(held",
        "tw_store_float32(1 + held",
    ),
    ("same_rows_twice", "mean", {"lanes": "rows"}, r"(load_float32\(p0 [^;]*) \+ \d+\);", r"\1);"),
    (
        "rows_past_the_last",
        "mean",
        {"lanes": "rows"},
        r"store_most_float32\((.*), \d+ - .*\);",
        r"store_float32(\1);",
    ),
    ("first_tile_twice", "logsumexp", {"passes": "online"}, r"\* j0 \+ \d+", "* j0"),
]
PROBLEMS = {
    "softmax": {"r": 3, "c": 67},
    "logsumexp": {"r": 3, "c": 128},
    "layernorm": {"r": 3, "c": 64},
    "sum": {"shape": "5x67", "over": "1"},
    "argmax": {"shape": "3x131", "over": "1"},
    "mean": {"shape": "7x67", "over": "0"},
}


@pytest.mark.parametrize(("name", "operator", "decisions", "text", "other"), BUGS)
def test_planted_bugs_are_found(name, operator, decisions, text, other, tmp_path):
    w = workload(operator, **PROBLEMS[operator])
    inputs = w.make_inputs(0)
    walk = np.cumsum(inputs["x"], axis=1)  # depends on what comes late, and has equal maxima
    inputs["x"] = np.round(walk) - 40
    space = space_of(w)
    schedule = next(
        s
        for s in space.enumerate()
        if s.values["workers"] == 2
        and s.values["unroll"] == 2
        and all(s.values[d] == v for d, v in decisions.items())
    )
    kernel = space.lower(schedule)
    check_bugs_are_found(kernel, {name: (text, other)}, w, TARGET, tmp_path, [inputs], count=0)

"""How well estimates rank what was timed: what is read, what is in order, what the tables say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.operators.estimates import RESULTS, Judged, families, judge, predictions
from experiments.operators.families.cases import case
from experiments.operators.timed import Problem, Timed, problems, timed, valid
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import target_from_json

TARGET = cuda_target("sm_90a")
SOFTMAX = case("softmax", "float32", r=512, c=1024)
UNTUNED = json.loads((RESULTS / "operators/results/untuned_h200.json").read_text())
SLOW = (
    "cross_entropy 4096x32000 bfloat16",
    "softmax 512x131072 float32",
    "gated_matmul 16x14336x4096 bfloat16",
    "columns 65536x1024 bfloat16",
    "max_pool2d 32 x 64 at 112/2 NCHW float32",
    "32 x 1024 1x1/2 at 14 to 2048, bias",
    "32 x 1024 1x1 at 14 to 512, relu",
    "mobilenet-v2, batch 8: 32 1x1 at 112 to 16",
)
"""Cases whose predictions took twice as long as the fastest known and more, or nearly so."""


def schedules(count: int) -> list[Schedule]:
    space = space_for(SOFTMAX.workload, TARGET)
    return [space.schedule(row) for row in space.sample(np.random.default_rng(0), count)]


def judged(seconds: list[float], estimated: list[float], predicted: int | None = None):
    problem = Problem("rows", SOFTMAX.name, SOFTMAX.workload)
    given = (np.array(seconds), np.array(estimated))
    return Judged(problem, schedules(len(seconds)), *given, predicted)


@pytest.mark.parametrize("name", SLOW)
def test_what_was_slow_is_estimated_to_be_slower_than_what_was_fast(name):
    target = target_from_json(UNTUNED["target"])
    (times,) = timed({"cases": {name: UNTUNED["cases"][name]}})
    found = judge(problems()[name], times, target)
    assert found is not None
    assert len(found.seconds) == 2
    assert found.first == 1.0


def test_pairs_of_different_times_are_in_order_ties_half():
    case = judged([1.0, 2.0, 2.1, 4.0], [1.0, 3.0, 0.5, 3.0])
    assert case.pairs == (5, 3.5)  # the second and the third took as long
    assert case.first == 2.1
    assert case.over == pytest.approx((1.0 * 3.0 * 0.5 * 3.0 / 16.8) ** 0.25)


def test_a_table_has_a_line_for_each_family_and_one_for_all():
    lines = families([judged([1.0, 2.0], [1.0, 2.0]), judged([1.0], [2.0])])
    assert lines[2] == "| rows | 1 | 3 | 1 | 1.00 | 1.00 | 1.00 | 1.41 |"
    assert lines[3].startswith("| all | 1 | 3 |")
    assert families([]) == lines[:2]


def test_predictions_that_were_timed_are_beside_the_fastest():
    lines = predictions([judged([1e-6, 4e-6], [2e-6, 3e-6], 1), judged([1.0], [1.0])], TARGET)
    assert len(lines) == 3
    assert lines[2].startswith(f"| {SOFTMAX.name} | 0.25 | 1.0 | 2.0 | 4.0 | 3.0 | ")


def test_every_way_to_list_schedules_is_read():
    fast, slow, other = schedules(3)
    row = {
        "explored": [{"us": 3.0, "schedule": slow.to_json()}, {"us": 1.0}],
        "templates": {other.template: {"tried": [{"us": 2.0, "values": dict(other.values)}]}},
        "schedule": fast.to_json(),
        "untuned": slow.to_json(),
        "median_s": {"tilewright": 1e-6, "untuned": 3e-6},
    }
    model = {"operators": {"x": {"schedule": fast.to_json(), "median_s": {"tilewright": 1e-6}}}}
    explored, compared, of_model = timed({"cases": {"a": row}, "models": {"m": model}})
    assert explored == Timed("a", {slow: 3e-6, other: 2e-6})
    assert compared == Timed("a", {fast: 1e-6, slow: 3e-6}, slow)
    assert of_model == Timed("m: x", {fast: 1e-6})


def test_schedules_of_before_a_decision_was_made_are_valid_and_others_are_not():
    space = space_for(SOFTMAX.workload, TARGET)
    (whole,) = schedules(1)
    values = {n: v for n, v in whole.values.items() if n != "idle_clusters"}
    assert valid(Schedule(whole.template, tuple(values.items())), space) is not None
    values["vector"] = 3
    assert valid(Schedule(whole.template, tuple(values.items())), space) is None


def test_what_has_no_estimate_is_not_judged():
    problem = Problem("rows", SOFTMAX.name, SOFTMAX.workload)
    assert judge(problem, Timed(SOFTMAX.name, {}), TARGET) is None

from __future__ import annotations

import numpy as np

from costmodel.evaluation import evaluate
from costmodel.model import XGBoostModel
from tests.costmodel.toys import examples, points, product, target, toy_space


def measured(m: int, count: int = 120):
    space = toy_space(product(m=m), target())
    return examples(space, points(space, count), failing=11)


def trained(known) -> XGBoostModel:
    model = XGBoostModel(space_for=toy_space)
    model.fit(known)
    return model


def test_an_unseen_workload_is_predicted_by_the_model_itself():
    model = trained(measured(512) + measured(256))
    (result,) = evaluate(model, measured(384), toy_space)
    assert result.protocol == "held out"
    assert "m=384" in result.workload
    assert result.rows == len({e.schedule for e in measured(384)})
    assert result.pairwise > 0.75
    assert result.top5 > 0.8


def test_seen_workloads_are_left_out_in_turn():
    known = measured(512) + measured(384)
    results = evaluate(trained(known), known, toy_space)
    assert [result.protocol for result in results] == ["left out"] * 2
    assert all(0.7 < result.pairwise < 1.0 for result in results)


def test_a_lone_workload_is_evaluated_by_folds_and_not_by_memory():
    known = measured(512, 300)
    generator = np.random.default_rng(0)
    shuffled = generator.permutation([e.latency for e in known])
    noise = [
        type(e)(e.workload, e.target, e.schedule, s) for e, s in zip(known, shuffled, strict=True)
    ]
    (learned,) = evaluate(trained(known), known, toy_space)
    (chance,) = evaluate(trained(noise), noise, toy_space)
    assert learned.protocol == chance.protocol == "folds"
    assert learned.pairwise > 0.8
    assert 0.35 < chance.pairwise < 0.65
    assert chance.recall1 < 0.5


def test_workloads_that_never_ran_are_left_out_of_the_report():
    space = toy_space(product(m=64), target())
    dead = examples(space, points(space, 20), failing=1)
    known = measured(512)
    assert len(evaluate(trained(known), known + dead, toy_space)) == 1

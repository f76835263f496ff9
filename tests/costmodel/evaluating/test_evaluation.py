from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.costmodel.dataset import group_examples
from tilewright.costmodel.evaluating.evaluation import evaluate
from tilewright.costmodel.evaluating.metrics import METRICS
from tilewright.costmodel.evaluating.parts import Split
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.testing.toys import examples, points, product, toy_space
from tilewright.spaces.errors import InputError
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.workloads.workload import Workload


def measured(m: int, count: int = 120, machine=None, **parameters):
    space = toy_space(product(m=m, **parameters), machine or made_up_cpu())
    return examples(space, points(space, count), failing=11)


def trained(known) -> XGBoostModel:
    model = XGBoostModel(space_for=toy_space)
    model.fit(known)
    return model


def evaluated(model: XGBoostModel, known, split: Split = Split.WORKLOAD):
    groups, _ = group_examples(known, toy_space)
    return evaluate(model, groups, split, toy_space)


def shuffled(known, seed: int = 0):
    """The same schedules with each other's latencies: nothing to learn from."""
    order = np.random.default_rng(seed).permutation(len(known))
    return [
        type(e)(e.workload, e.target, e.schedule, known[i].latency)
        for e, i in zip(known, order, strict=True)
    ]


def test_an_unseen_workload_is_predicted_by_the_model_itself():
    model = trained(measured(512) + measured(256))
    found = evaluated(model, measured(384))
    (part,) = found.parts
    assert part.protocol == "held out"
    assert "m=384" in part.name
    assert part.rows == len({e.schedule for e in measured(384)})
    assert part.figures["pairwise"] > 0.75
    assert part.figures["top-5"] > 0.8
    assert any("intervals are left out: they take 5 workloads" in s for s in found.left_out)
    assert "Not known to be of use" in found.verdict


def test_seen_workloads_are_left_out_in_turn():
    known = measured(512) + measured(384)
    parts = evaluated(trained(known), known).parts
    assert [part.protocol for part in parts] == ["left out"] * 2
    assert all(0.7 < part.figures["pairwise"] < 1.0 for part in parts)


def test_a_workload_is_seen_in_whatever_spelling_it_was_learned():
    known = measured(512, epilogue="relu(x + bias[n])") + measured(384)
    again = measured(512, epilogue="max(b[n] + x, 0)") + measured(384)
    parts = evaluated(trained(known), again).parts
    assert [part.protocol for part in parts] == ["left out"] * 2
    assert 'epilogue="max(b[n] + x, 0)"' in parts[1].name


@pytest.mark.parametrize("split", [Split.WORKLOAD, Split.OPERATOR])
def test_a_workload_is_seen_although_nobody_reads_its_text_any_more(split):
    """As of an operator that another version of this program had."""

    def older(work: Workload) -> Workload:
        return Workload(f"old_{work.extents['m']}", work.parameters, work.program)

    known = measured(512) + measured(384)
    old = [replace(e, workload=older(e.workload)) for e in known]
    model = trained(old)
    assert model.workloads == []
    parts = evaluated(model, old, split).parts
    assert [part.protocol for part in parts] == ["left out"] * 2


def test_a_workload_on_two_devices_is_held_out_on_both():
    """Else what was seen of it on one would tell of the other."""
    machines = made_up_cpu(), made_up_cpu(model="another", cores=4)
    known = [e for machine in machines for e in measured(512, machine=machine)]
    here = evaluated(trained(known), known)
    assert [(part.protocol, part.groups) for part in here.parts] == [("folds", 2)]
    known += measured(384)
    found = evaluated(trained(known), known)
    assert sorted((part.protocol, part.groups) for part in found.parts) == [
        ("left out", 1),
        ("left out", 2),
    ]


def test_a_lone_workload_is_evaluated_by_folds_and_not_by_memory():
    known = measured(512, 300)
    noise = shuffled(known)
    (learned,) = evaluated(trained(known), known).parts
    (chance,) = evaluated(trained(noise), noise).parts
    assert learned.protocol == chance.protocol == "folds"
    assert learned.figures["pairwise"] > 0.8
    assert 0.35 < chance.figures["pairwise"] < 0.65
    assert chance.figures["recall@1%"] < 0.5


def test_what_is_said_of_a_lone_workload_is_not_said_of_others():
    known = measured(512, 60)
    lone = evaluated(trained(known), known)
    assert "on schedules that it has not seen, of the one workload there is, it" in lone.verdict
    assert lone.to_json()["protocols"].keys() == {"folds"}
    seen = known + measured(384, 60)
    two = evaluated(trained(seen), seen + measured(256, 60))
    assert "on workloads that it has not seen it orders" in two.verdict
    assert "tune 5 or more" in two.verdict
    assert two.to_json()["protocols"].keys() == {"held out", "left out"}


def test_workloads_that_never_ran_are_left_out_of_the_report():
    space = toy_space(product(m=64), made_up_cpu())
    dead = examples(space, points(space, 20), failing=1)
    known = measured(512)
    assert len(evaluated(trained(known), known + dead).parts) == 1
    assert evaluated(trained(known), dead) is None


def test_a_split_by_device_holds_out_all_of_each():
    """Two compilers and two numbers of threads are one device."""
    here, again, there = (
        made_up_cpu(),
        made_up_cpu(threads=2, compiler="clang"),
        made_up_cpu(model="another"),
    )
    known = [
        e
        for i, machine in enumerate((here, again, there))
        for e in measured(512 + 64 * i, 60, machine)
    ]
    found = evaluated(trained(known), known, Split.DEVICE)
    assert [(p.name, p.groups) for p in found.parts] == [("cpu another", 1), ("cpu made up", 2)]
    with pytest.raises(
        InputError, match="a split by device needs schedules of two devices or more"
    ):
        evaluated(trained(known), measured(512) + measured(384), Split.DEVICE)
    with pytest.raises(InputError, match=r"of two operators or more; .* 'matmul'"):
        evaluated(trained(known), known, Split.OPERATOR)


def test_what_the_rows_cannot_support_is_left_out_in_words():
    known = measured(512, 9) + measured(384, 40)
    found = evaluated(trained(known), known)
    rows = {part.name: part.rows for part in found.parts}
    for part in found.parts:
        for metric in METRICS:
            assert (metric.name in part.figures) == (rows[part.name] >= metric.least_rows)
    assert found.figures["top-5"].parts == 1
    assert any(s.startswith("recall@1% is left out: it takes 100") for s in found.left_out)
    assert any(s.startswith("top-5 is of 1 of 2") for s in found.left_out)


def test_a_verdict_says_whether_the_model_is_of_use():
    shapes = (256, 320, 384, 448, 512, 640)
    known = [e for m in shapes for e in measured(m, 60)]
    noise = [e for m in shapes for e in shuffled(measured(m, 60), seed=m)]
    good, bad = evaluated(trained(known), known), evaluated(trained(noise), noise)
    assert good.verdict.startswith("Of use: on workloads that it has not seen it orders")
    assert bad.verdict.startswith("Not of use: ")
    low, high = good.figures["pairwise"].interval
    assert low < good.figures["pairwise"].mean < high
    assert good.gain.mean == pytest.approx(good.figures["pairwise"].mean - good.roofline.mean)


def test_models_of_very_many_rows_are_judged_by_fewer(monkeypatch):
    known = measured(512, 60) + measured(384, 60)
    model = trained(known)
    by_all = evaluated(model, known)
    for module in ("splits", "evaluation"):
        monkeypatch.setattr(f"tilewright.costmodel.evaluating.{module}.MOST_ROWS", 40)
    by_some = evaluated(model, known)
    assert not any("drawn at random" in sentence for sentence in by_all.left_out)
    assert any("about 40 of the schedules" in sentence for sentence in by_some.left_out)
    assert by_some.figures["pairwise"] != by_all.figures["pairwise"]

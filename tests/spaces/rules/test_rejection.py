from __future__ import annotations

from itertools import product as every

import numpy as np
import pytest

from tilewright.costmodel.testing.toys import product, toy_space
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.rules.rejection import rejections
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.targets import made_up_cpu


def test_a_rule_rejects_the_share_of_raw_points_that_break_it():
    space = toy_space(product(), made_up_cpu())
    values = {d.name: d.values for d in space.templates["tile"].decisions}
    pairs = [{"rows": r, "vectors": v} for r, v in every(values["rows"], values["vectors"])]
    [rule] = space.templates["tile"].rules
    share = sum(not rule.holds(pair) for pair in pairs) / len(pairs)
    [found] = rejections(space, 20_000)
    [rejection] = found.rules
    assert (found.template, found.drawn, rejection.rule) == ("tile", 20_000, "registers")
    assert rejection.rejected / found.drawn == pytest.approx(share, abs=0.02)
    assert rejection.alone == rejection.rejected == found.drawn - found.valid
    assert "accumulators leave no registers" in rejection.example
    assert rejections(space, 20_000) == [found]


@pytest.mark.parametrize("name", ["cpu", "cuda:sm_90a"])
def test_rules_of_every_template_judge_raw_points(name):
    work = workload("matmul", m=256, n=256, k=256, dtype="float32" if name == "cpu" else "float16")
    space = space_for(work, detect_target(name))
    found = rejections(space, 300)
    assert [each.template for each in found] == list(space.templates)
    for each in found:
        assert 0 <= each.valid < each.drawn == 300
        counts = [rule.rejected for rule in each.rules]
        assert counts == sorted(counts, reverse=True)
        assert each.valid + sum(rule.alone for rule in each.rules) <= each.drawn
        assert max(counts) <= each.drawn - each.valid <= sum(counts)
        assert all(rule.example for rule in each.rules)
        own = {rule.name for rule in space.templates[each.template].rules if not rule.implied}
        assert {rule.rule for rule in each.rules} <= own


def test_implied_rules_refuse_nothing_that_others_do_not():
    """So that raw points are as valid without them as with them."""
    work = workload("matmul", m=256, n=256, k=256, dtype="float16")
    template = space_for(work, detect_target("cuda:sm_90a")).templates["hopper"]
    generator = np.random.default_rng(0)
    columns = {d.name: generator.choice(np.array(d.values), 3000) for d in template.decisions}
    kept = {
        implied: np.all([r.holds(columns) for r in template.rules if r.implied == implied], axis=0)
        for implied in (False, True)
    }
    assert kept[False].any()
    assert not kept[True].all()
    assert kept[True][kept[False]].all()

"""Rules judged sooner: they refuse what no later decision can save, and nothing else."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.spaces.rules.early import foresee
from tilewright.spaces.template import Decision, Rule

DECISIONS = (Decision("a", (4, 1, 2)), Decision("b", ("x", "y")), Decision("c", (False, True)))
RULES = (
    Rule("small", ("a", "b"), lambda c: (c["b"] == "x") | (c["a"] < 4), str),
    Rule("even", ("a", "c"), lambda c: c["c"] | (c["a"] % 2 == 0), str),
    Rule("never", ("a", "b", "c"), lambda c: (c["a"] != 1) | (c["b"] == "y"), str),
    Rule("elsewhere", ("a", "other"), lambda c: c["a"] < 0, str),
)


def keeps(**values: int | str | bool) -> bool:
    columns = {name: np.array(value) for name, value in values.items()}
    return all(rule.holds(columns) for rule in RULES if set(rule.reads) <= set(values))


@pytest.mark.parametrize("known", [1, 2])
def test_it_refuses_exactly_what_leads_nowhere(known):
    (rule,) = foresee(DECISIONS, RULES, [known])
    names = [decision.name for decision in DECISIONS]
    assert rule.reads == tuple(names[:known])
    for chosen in product(*(decision.values for decision in DECISIONS[:known])):
        decided = dict(zip(names, chosen, strict=False))
        rest = product(*(decision.values for decision in DECISIONS[known:]))
        possible = any(keeps(**decided, **dict(zip(names[known:], r, strict=True))) for r in rest)
        assert bool(rule.holds({n: np.array(v) for n, v in decided.items()})) == possible


def test_it_judges_populations_of_any_shape_and_explains():
    (rule,) = foresee(DECISIONS, RULES, [2])
    columns = {"a": np.array([[1], [4]]), "b": np.array([["x", "y"]])}
    assert rule.holds(columns).tolist() == [[False, True], [True, False]]
    assert rule.explain({"a": 4, "b": "y"}).startswith("a=4, b=y leaves no values of c")

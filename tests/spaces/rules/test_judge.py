"""Which values of a decision rules allow: the same by table as by asking them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.rules import judge
from tilewright.spaces.rules.judge import Judge, together
from tilewright.spaces.template import Decision, Rule

DECISIONS = (
    Decision("rows", tuple(range(1, 9))),
    Decision("columns", (4, 8, 16)),
    Decision("threads", (2,)),
    Decision("order", ("mn", "nm")),
)
RULES = [
    Rule("area", ("rows", "columns"), lambda c: c["rows"] * c["columns"] <= 48, str),
    Rule("even", ("columns", "threads"), lambda c: c["columns"] % c["threads"] == 0, str),
    Rule("order", ("columns", "order"), lambda c: (c["order"] == "mn") | (c["columns"] > 4), str),
    Rule("least", ("columns",), lambda c: c["columns"] > 3, str),
]
VALUES = {d.name: (i, np.array(d.values)) for i, d in enumerate(DECISIONS)}


def plainly(rules: list[Rule], row: np.ndarray) -> list[bool]:
    """Of each value of ``columns``, whether all rules hold with it."""
    chosen = {name: values[row[column]] for name, (column, values) in VALUES.items()}
    every = VALUES["columns"][1]
    return [all(rule.holds(chosen | {"columns": value}) for rule in rules) for value in every]


@pytest.mark.parametrize("rules", [RULES, RULES[:1], RULES[1:2], RULES[3:]])
def test_a_table_says_what_the_rules_say(rules):
    made = Judge(rules, "columns", VALUES)
    sizes = [len(decision.values) for decision in DECISIONS]
    rows = np.random.default_rng(0).integers(0, sizes, (40, len(sizes)))
    expected = [plainly(rules, row) for row in rows]
    asked = [made.allows(rows).tolist() for _ in range(3)]  # later ones by the table
    assert asked == [expected] * 3


@pytest.mark.parametrize("large", ["WHOLE_ENTRIES", "TABLE_ENTRIES"])
def test_a_table_too_large_to_be_worked_out_at_once_grows_row_by_row(large, monkeypatch):
    monkeypatch.setattr(judge, large, 0)
    made = Judge(RULES, "columns", VALUES)
    sizes = [len(decision.values) for decision in DECISIONS]
    rows = np.random.default_rng(0).integers(0, sizes, (40, len(sizes)))
    for start in (0, 20, 10, 0):
        asked = rows[start : start + 20]
        assert made.allows(asked).tolist() == [plainly(RULES, row) for row in asked]


def test_what_was_asked_before_is_not_worked_out_again(monkeypatch):
    monkeypatch.setattr(judge, "WHOLE_ENTRIES", 0)
    counted: list[int] = []

    def holds(columns):
        counted.append(len(columns["rows"]))
        return columns["rows"] * columns["columns"] <= 48

    made = Judge([Rule("area", ("rows", "columns"), holds, str)], "columns", VALUES)
    rows = np.array([[0, 0, 0, 0], [3, 0, 0, 0]])
    for asked in (rows[:1], rows, rows[:1], rows):
        made.allows(asked)
    assert counted == [1, 1]


@pytest.mark.parametrize("least", [3, 4, 16])
def test_rules_of_one_decision_alone_are_vain_where_they_allow_everything(least):
    rule = Rule("least", ("columns",), lambda c: c["columns"] > least, str)
    made = Judge([rule], "columns", VALUES)
    assert made.is_vain == (least == 3)
    allowed = [[value > least for value in (4, 8, 16)]] * 5
    assert made.allows(np.zeros((5, len(DECISIONS)), dtype=np.int32)).tolist() == allowed
    assert not Judge(RULES[:1], "columns", VALUES).is_vain


def test_rules_share_a_table_as_long_as_it_is_small(monkeypatch):
    assert list(together(RULES, "columns", VALUES)) == [RULES]
    monkeypatch.setattr(judge, "JOINT_ENTRIES", 3 * 8)
    groups = list(together(RULES, "columns", VALUES))
    assert groups == [RULES[:2], RULES[2:]]
    assert list(together([], "columns", VALUES)) == []

"""Tables that are seldom drawn."""

from __future__ import annotations

import numpy as np
import pytest

from measure.drawing.draw import one_draw
from measure.drawing.tables import with_other_tables
from spaces.language.inputs import check_inputs
from spaces.operators import workload


@pytest.mark.parametrize(("rows", "groups"), [(37, 5), (4, 9), (6, 1), (1, 3), (7, 2)])
def test_every_kind_of_table_is_there_and_valid(rows, groups):
    made = workload("grouped_matmul", t=rows, n=4, k=3, experts=groups)
    first = one_draw(made, 0)
    tables = []
    for draw in with_other_tables(first):
        check_inputs(made.program, draw.inputs)
        assert draw.inputs["A"] is first.inputs["A"]
        assert draw.allowed().keys() == {"C"}
        tables.append(draw.inputs["expert"].tolist())
    assert [0] * rows in tables
    assert [groups - 1] * rows in tables
    if groups > 2:
        assert any(0 not in table and groups - 1 not in table for table in tables)
    if rows > groups > 1:
        assert any(table.count(0) == 1 for table in tables)


@pytest.mark.parametrize(
    "text", ["matmul m=4 n=4 k=4", "softmax r=4 c=4", "embedding t=4 d=4 words=9"]
)
def test_programs_without_sorted_tables_have_no_others(text):
    assert list(with_other_tables(one_draw(workload(text), 0))) == []


def test_tables_are_drawn_beside_others_of_the_same_inputs():
    made = workload("grouped_matmul", t=9, n=4, k=3, experts=3, rows=5)
    for draw in with_other_tables(one_draw(made, 0)):
        assert np.array_equal(draw.inputs["row"], one_draw(made, 0).inputs["row"])

"""Which elements of operands a program hides."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.language.ragged_programs import inputs_of, ragged_program
from tilewright.measure.drawing.hidden import hidden, hides
from tilewright.spaces.derivation.rounding.rows import Rows
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw

WEIGHED = "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d])) * v[b,j,e])"


def test_slots_beyond_a_length_are_hidden():
    made = program(f"n: int32[b](index < 10); where j < n[b]; {WEIGHED}", b=3, j=9, d=2, e=2)
    inputs = {**draw(made, 0), "n": np.array([9, 4, 0], np.int32)}
    found = hidden(made, inputs, None)
    for name in ("k", "v"):
        assert found[name].all(axis=-1).tolist() == [[j >= n for j in range(9)] for n in (9, 4, 0)]
    assert not found["n"].any()
    assert found["q"].all(axis=-1).tolist() == [False, False, True]


def test_rows_that_no_table_names_are_hidden():
    made = program("t: int32[i](index < 6); w: float32[6,d]; y[i,d] = w[t[i],d]", i=3, d=4)
    inputs = {**draw(made, 0), "t": np.array([5, 0, 5], np.int32)}
    assert hidden(made, inputs, None)["w"].all(axis=1).tolist() == [False, *4 * [True], False]


@pytest.mark.parametrize("table", ["row", "ptr"])
def test_entries_of_other_rows_are_hidden_and_what_they_gather(table):
    made = ragged_program("attention", table == "ptr")
    inputs = inputs_of(made, np.repeat(np.arange(8), 3))
    inputs["col"][:] = np.arange(24) % 9
    found = hidden(made, inputs, Rows({"r": np.array([1, 2])}))
    named = np.unique(inputs["col"][3:9])
    for name in ("k", "v"):
        assert np.flatnonzero(~found[name].all(axis=1)).tolist() == named.tolist()
        assert not found[name][named].any()
    assert not found[table].any()
    assert found["col"].tolist() == [not 3 <= e < 9 for e in range(24)]


def test_the_side_that_is_not_chosen_is_hidden():
    made = program("b: float32[4]; y[i] = select(x[i] > 0, a[i], inside(b[i + 1], 0))", i=4)
    inputs = {**draw(made, 0), "x": np.array([1, -1, np.nan, -1], np.float32)}
    found = hidden(made, inputs, None)
    assert found["a"].tolist() == [False, True, True, True]
    assert found["b"].tolist() == [True, True, False, False]
    assert not found["x"].any()


def test_what_other_rows_alone_read_is_hidden_from_some():
    made = program("where j <= i; y[i] = sum[j](x[i,j] * v[j])", i=6, j=6)
    found = hidden(made, draw(made, 0), Rows({"i": np.array([1, 3])}))
    assert found["v"].tolist() == [False] * 4 + [True] * 2
    assert found["x"][[1, 3]].tolist() == [[j > i for j in range(6)] for i in (1, 3)]
    assert found["x"][[0, 2, 4, 5]].all()


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("y[i] = sum[j](x[i,j])", False),
        ("where j <= i; y[i] = sum[j](x[i,j])", True),
        ("y[i] = sum[j](select(x[i,j] > 0, z[j], 0))", True),
    ],
)
def test_programs_hide_by_conditions_selections_and_tables(text, some):
    assert hides(program(text, i=3, j=4)) == some

"""Ranges of entries: what makes one, and what is evaluated over them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.spaces.language import direct
from tests.spaces.language.ragged_programs import (
    BODIES,
    BY_POINTERS,
    BY_TABLE,
    graphs,
    inputs_of,
    ragged_program,
)
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import evaluation, program
from tilewright.spaces.language.inputs import check_inputs, draw
from tilewright.spaces.language.ranges import Range, Walk, ranges


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_ranges_are_evaluated_as_conditions_say(name, pointers, monkeypatch):
    made = ragged_program(name, pointers)
    assert ranges(made).reductions
    for number, rows in list(enumerate(graphs().values()))[pointers::2]:
        monkeypatch.setattr(evaluation, "CHUNK", (1 << 21, 7)[number // 2 % 2])
        inputs = inputs_of(made, rows, number)
        with np.errstate(all="ignore"):
            exact = direct.compute(made, inputs)["y"]
        shape = made.shape(made.stage["y"].axes)
        expected = np.array(list(exact.values())).reshape(shape)
        found = evaluation.evaluate(made, inputs)["y"]
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)
        stages = evaluation.evaluate_stages(made, inputs)
        np.testing.assert_allclose(stages["y"], expected, 1e-9, 1e-12)


@pytest.mark.parametrize(
    "condition",
    [
        "row[e] == r",
        "r == row[e]",
        "ptr[r] <= e and e < ptr[r + 1]",
        "ptr[r] <= e < ptr[1 + r]",
        "ptr[r + 1] > e and e >= ptr[r]",
    ],
)
def test_a_range_is_seen_however_it_is_written(condition):
    table = "ptr: int32[r+1](sorted < e+1)" if "ptr" in condition else "row: int32[e](sorted < r)"
    made = program(f"{table}; y[r] = sum[e: {condition}](x[e])", r=5, e=9)
    (found,) = ranges(made).reductions.values()
    assert (found.row, found.entry, found.pointers) == ("r", "e", "ptr" in condition)
    assert set(found.conditions) == set(made.conditions)


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("row: int32[e](index < r)", "row[e] == r"),
        ("row: int32[e](sorted < r)", "row[e] <= r"),
        ("row: int32[e](sorted < r)", "row[e] == 2 * r"),
        ("ptr: int32[r+1](sorted < e+1)", "ptr[r] <= e"),
        ("ptr: int32[r+1](sorted < e+1)", "ptr[r] <= e and e <= ptr[r + 1]"),
        ("ptr: int32[r+2](sorted < e+1)", "ptr[r] <= e and e < ptr[r + 2]"),
        ("ptr: int32[r+1](index < e+1)", "ptr[r] <= e and e < ptr[r + 1]"),
    ],
)
def test_other_conditions_make_no_range(table, condition):
    made = program(f"{table}; y[r] = sum[e: {condition}](x[e])", r=5, e=9)
    assert not ranges(made).reductions


def test_further_conditions_hold_within_a_range():
    text = "row: int32[e](sorted < r); y[r] = sum[e: row[e] == r and e % 2 == 0](x[e])"
    made = program(text, r=4, e=9)
    inputs = draw(made, 1)
    expected = [inputs["x"][::2][inputs["row"][::2] == r].astype(float).sum() for r in range(4)]
    np.testing.assert_allclose(evaluation.evaluate(made, inputs)["y"], expected)


def test_stages_that_entries_read_are_along_them_and_outputs_are_not():
    made = ragged_program("attention")
    (score,) = ranges(made).along
    assert made.stage[score].axes == ("r", "e")
    both = "s[r,e] = sum[d](q[r,d] * k[col[e],d]); y[r] = max[e](s[r,e]); -> s, y"
    text = BY_TABLE.replace("< n", "< 9") + both
    assert not ranges(program(text, r=5, e=9, d=2)).along


def test_a_graph_of_many_entries_takes_no_product_of_rows_and_entries():
    count = 20_000
    text = BY_POINTERS.replace("< n", f"< {count}") + BODIES["sparse times dense"]
    made = program(text, r=count, e=3 * count, c=4)
    inputs = draw(made, 0)
    matrix = sparse.csr_matrix(
        (inputs["val"].astype(float), inputs["col"], inputs["ptr"]), (count, count)
    )
    expected = matrix @ inputs["x"].astype(float)
    np.testing.assert_allclose(evaluation.evaluate(made, inputs)["y"], expected, 1e-9, 1e-12)


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_parts_of_a_walk_have_every_row_once(most):
    counts = np.array([0, 3, 0, 0, 7, 1, 0])
    low = np.concatenate([[0], np.cumsum(counts)[:-1]])
    range_ = Range("r", "e", "ptr", True, ())
    walk = Walk.of(range_, np.arange(7), low, low + counts, 11)
    parts = list(walk.parts(most))
    assert np.concatenate([walk.rows[part] for part in parts]).tolist() == list(range(7))
    assert all(walk.cut(p).counts.sum() <= most or p.stop == p.start + 1 for p in parts)
    assert walk.values["e"].tolist() == list(range(11))
    assert walk.values["r"].tolist() == np.repeat(np.arange(7), counts).tolist()


def test_tables_that_do_not_say_what_is_valid_stay_within_entries():
    range_ = Range("r", "e", "ptr", True, ())
    walk = Walk.of(range_, np.arange(3), np.array([5, -2, 9]), np.array([2, 99, 4]), 7)
    assert walk.counts.tolist() == [0, 7, 0]


# -- inputs ----------------------------------------------------------------------------------------


def test_pointers_are_drawn_from_none_to_all_entries():
    for skew in ("", ", skew=2.1"):
        text = BY_POINTERS.replace("< n", "< 9").replace("e+1)", f"e+1{skew})")
        made = program(text + BODIES["greatest"], r=30, e=200, c=2)
        for seed in range(5):
            inputs = draw(made, seed)
            check_inputs(made, inputs)
            assert (inputs["ptr"][0], inputs["ptr"][-1]) == (0, 200)


def test_a_skew_makes_some_rows_long():
    longest = {}
    for skew in ("", ", skew=2.1", ", skew=1.5"):
        text = BY_TABLE.replace("< n", "< 9").replace("sorted < r", f"sorted < r{skew}")
        made = program(text + BODIES["greatest"], r=400, e=4000, c=2)
        inputs = draw(made, 3)
        check_inputs(made, inputs)
        longest[skew] = np.bincount(inputs["row"]).max()
    assert longest[""] < 40 < longest[", skew=2.1"] < longest[", skew=1.5"]


def test_a_skew_is_part_of_the_text_and_of_the_identity():
    plain, skewed = (
        program(f"row: int32[e](sorted < r{skew}); y[r] = sum[e: row[e] == r](x[e])", r=5, e=9)
        for skew in ("", ", skew=2.1")
    )
    assert "row: int32[9](sorted < 5, skew=2.1)" in skewed.text
    assert program(skewed.text).digest == skewed.digest != plain.digest


@pytest.mark.parametrize("skew", ["1", "0.5", "11", "x", "-2", "1e400"])
def test_a_skew_out_of_range_is_refused_in_one_line(skew):
    with pytest.raises(InputError, match=r"skew.*allowed: 1\.1 to 10\.0"):
        program(f"row: int32[9](sorted < r, skew={skew}); y[r] = sum[e: row[e] == r](x[e])", r=5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0, 2, 1, 3, 4], "ptr is not sorted: it falls after entry 1"),
        ([0, 1, 2, 3, 3], "ptr ends at 3; allowed: 4, the number of entries"),
        ([0, 1, 2, 3, 5], "ptr holds the index 5; allowed: 0 to 4"),
    ],
)
def test_pointers_that_are_not_valid_are_refused(given, words):
    text = "ptr: int32[r+1](sorted < e+1); y[r] = sum[e: ptr[r] <= e < ptr[r + 1]](x[e])"
    made = program(text, r=4, e=4)
    with pytest.raises(InputError) as error:
        check_inputs(made, {**draw(made, 0), "ptr": np.array(given)})
    assert words in str(error.value)

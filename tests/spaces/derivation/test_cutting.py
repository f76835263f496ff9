"""Programs cut in two compute what they computed in one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.spaces.derivation.programs import (
    ATTENTIONS,
    FURTHER_ROWS,
    ROWS,
    WITH_EMPTY_ROWS,
    attention,
    rows,
)
from tests.spaces.language.strategies import programs
from tilewright.spaces.derivation.cutting import cuts, keeps_wholes, more_cuts
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.program import Program
from tilewright.spaces.named import operator


def check(made: Program) -> int:
    """How many cuts there are; each is programs of the language that give the same outputs."""
    inputs, found = draw(made, 1), list(cuts(made))
    with np.errstate(all="ignore"):
        expected = evaluate(made, inputs)
        for parts in (*found, *more_cuts(made)):
            assert [program(str(part)) for part in parts] == list(parts)
            results: dict[str, np.ndarray] = {}
            for part in parts:
                known = {**inputs, **results}
                results |= evaluate(part, {o.name: known[o.name] for o in part.operands})
            for output in made.outputs:
                np.testing.assert_allclose(results[output.name], expected[output.name], rtol=1e-9)
    return len(found)


@pytest.mark.parametrize("name", {**ROWS, **FURTHER_ROWS})
def test_chains_may_be_cut_anywhere(name):
    check(rows(name, extent=33))


@pytest.mark.parametrize("name", [*ATTENTIONS, *WITH_EMPTY_ROWS])
def test_attention_may_be_cut_into_its_products_and_its_rows(name):
    assert check(attention(name)) >= 2


@settings(max_examples=100, deadline=None)
@given(programs())
def test_random_programs_may_be_cut_anywhere(text_and_extents):
    text, extents = text_and_extents
    try:
        made = program(text, **extents)
    except InputError:
        return
    check(made)


def test_a_factor_that_is_computed_becomes_an_array_with_what_leaves_the_loop():
    made = operator("rmsnorm_matmul", m=4, n=5, k=6)
    first, second = next(cuts(made))
    assert [output.name for output in first.outputs] == ["C_left"]
    assert [str(stage) for stage in second.stages] == ["C[m, n] = sum[k](C_left[m, k] * B[k, n])"]


WHOLE = {
    "its only reduction": "y[i] = 2 * sum[j](x[i,j])",
    "an index": "t[i] = argmax[j](x[i,j]); y[i] = sum[j](z[i,j]) + t[i]",
    "integers": "x: int32; s[i] = sum[j](x[i,j]); y[i] = s[i] * 0.5",
    "float64": "x: float64; y: float64; y[i,j] = softmax[j](x[i,j])",
    "an output that is read": "m[i] = max[j](x[i,j]); y[i,j] = x[i,j] - m[i]; -> m, y",
}


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_cut_where_numbers_would_be_lost_or_nothing_is_left(name):
    made = program(WHOLE[name], i=4, j=5)
    names = {output.name for first, _ in cuts(made) for output in first.outputs}
    assert not names - {"y_sum", "s_sum"}, names


@pytest.mark.parametrize(
    ("dtype", "narrow", "between"),
    [
        ("bfloat16", True, "bfloat16"),
        ("float16", True, "float16"),
        ("float32", True, "float32"),
        ("bfloat16", False, "float32"),
    ],
)
def test_a_factor_may_have_the_16_bits_of_what_it_is_multiplied_with(dtype, narrow, between):
    made = operator("rmsnorm_matmul", m=4, n=5, k=6, dtype=dtype)
    first, second = next(cuts(made, narrow))
    assert [output.dtype for output in first.outputs] == [between]
    assert second.operand["C_left"].dtype == between


def test_sums_are_handed_on_as_they_are():
    made = operator("gated_matmul", m=4, n=5, k=6, dtype="bfloat16")
    assert {o.dtype for first, _ in cuts(made, narrow=True) for o in first.outputs} == {"float32"}


MORE = {
    "before a reduction by a table": (
        "t: int32[i,j](index < 9); y[i] = sum[j](w[t[i,j]] * x[i,j])",
        [["y_each"], ["y"]],
    ),
    "after a map with a table": (
        "t: int32[i](index < 5); p[i] = sum[j](x[i,j]) - x[i,t[i]]; y = sum[i](p[i])",
        [["p_sum", "p"], ["y"]],
    ),
    "after a place": ("a[i] = argmax[j](x[i,j]); y[i] = w[a[i]]", [["a"], ["y"]]),
    "around conversions": (
        "w: int8; y: float16; y[i] = sum[j](x[i,j] * w[j])",
        [["w_wide"], ["y_wide"], ["y"]],
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_further_cuts(name):
    text, parts = MORE[name]
    made = program(text, i=4, j=5)
    found = [[[s.name for s in part.stages] for part in cut] for cut in more_cuts(made)]
    assert parts in found
    check(made)


def test_places_are_indices_of_what_follows():
    made = program(MORE["after a place"][0], i=4, j=5)
    (_, second), *_ = more_cuts(made)
    assert "a: int32[4](index < 5)" in str(second)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("p[i,j] = i * 2100000 + j; y[i] = sum[j](p[i,j] * 0.5)", False),
        ("p[i,j] = i * 2 + j; y[i] = sum[j](p[i,j] * 0.5)", True),
        ("x: int32; p[i,j] = x[i,j] + 1; y[i] = sum[j](p[i,j] * 0.5)", False),
        ("x: int8; p[i,j] = x[i,j] + 1; y[i] = sum[j](p[i,j] * 0.5)", True),
        ("p[i,j] = z[i,j] + 1; y[i] = sum[j](p[i,j] * 0.5)", True),
    ],
)
def test_whole_numbers_are_handed_on_if_floats_have_them(text, kept):
    made = program(text, i=9, j=5)
    firsts = [first for first, *_ in more_cuts(made)]
    assert all(map(keeps_wholes, firsts)) == kept or not firsts

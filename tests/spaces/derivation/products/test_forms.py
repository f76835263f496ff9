"""Forms of indices against the indices themselves, at all points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.spaces.derivation.points import Points
from tilewright.spaces.derivation.products.forms import (
    Form,
    Quotient,
    divided,
    remainder,
    span,
    variable,
)
from tilewright.spaces.derivation.products.splitting import indexing
from tilewright.spaces.language import program
from tilewright.spaces.language.tree import AxisValue, Binary, Negation, Number

EXTENTS = {"a": 5, "b": 7, "c": 6}
GRID = dict(zip(EXTENTS, np.indices(tuple(EXTENTS.values())), strict=True))
NUMBERS = st.integers(1, 8).map(lambda n: Number(float(n)))
LEAVES = st.one_of(st.sampled_from(list(EXTENTS)).map(AxisValue), NUMBERS)


def wider(inner):
    return st.one_of(
        st.builds(Binary, st.sampled_from("+-"), inner, inner),
        st.builds(Binary, st.just("*"), inner, NUMBERS),
        st.builds(Binary, st.sampled_from(["//", "%"]), inner, NUMBERS),
        st.builds(Negation, inner),
    )


@given(st.recursive(LEAVES, wider, max_leaves=8))
def test_a_form_has_the_values_of_its_index_and_a_span_that_holds_them(index):
    made = program("y = sum[a,b,c](1)", **EXTENTS)
    form = indexing(made, Number(1.0)).form(index)
    values = np.broadcast_to(Points({}, GRID).value(index), GRID["a"].shape)
    np.testing.assert_array_equal(np.broadcast_to(form.at(GRID, {}), values.shape), values)
    low, high = span(form, EXTENTS)
    assert low <= values.min()
    assert high >= values.max()


@pytest.mark.parametrize(
    ("form", "divisor", "quotient"),
    [
        (variable("a") * 4 + variable("b"), 4, "(b)//4 + a"),
        (variable("a") * 4 + variable("d"), 4, "a"),
        (variable("a") * 4 + variable("d"), 8, "(a)//2"),
        (variable("a") * 4 - Form((), 1), 4, "a - 1"),
        (variable(Quotient(variable("b"), 2)), 3, "(b)//6"),
    ],
)
def test_quotients_are_removed_as_far_as_extents_allow(form, divisor, quotient):
    limits = {**EXTENTS, "d": 4}
    assert str(divided(form, divisor, limits)) == quotient
    rest = remainder(form, divisor, limits)
    assert rest == form - divided(form, divisor, limits) * divisor

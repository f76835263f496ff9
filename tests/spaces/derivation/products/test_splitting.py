"""Indices of parts against the expressions that they are found in, at all points."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.spaces.indices import value_of
from tilewright.spaces.derivation.points import Points
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
def test_an_index_has_the_values_of_its_expression_and_a_span_that_holds_them(expression):
    made = program("y = sum[a,b,c](1)", **EXTENTS)
    index = indexing(made, Number(1.0)).index(expression)
    values = np.broadcast_to(Points({}, GRID).value(expression), GRID["a"].shape)
    np.testing.assert_array_equal(np.broadcast_to(value_of(index, GRID), values.shape), values)
    low, high = index.span
    assert low <= values.min()
    assert high >= values.max()
    assert index.ordered == index

"""Laws of indices, against Python's integers."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.spaces.indices import value_of
from tilewright.spaces.algebra.atoms import Entry, Quotient, Remainder
from tilewright.spaces.algebra.index import Index, extent, index, total, variable

EXTENTS = {"a": 8, "b": 6, "c": 3, "d": None}
TABLE = np.array([5, 0, 3, 3, 1])
M, N = extent("m", 1, 100), extent("n", 8, 96, multiple=8)
BELOW = {"i": M, "j": N}


def combined(children):
    numbers = st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16))
    factors = st.sampled_from((-16, -8, -3, -1, 0, 1, 2, 3, 4, 6, 8, 12))
    return st.one_of(
        st.tuples(st.sampled_from("+-"), children, children),
        st.tuples(st.just("*"), children, factors),
        st.tuples(st.sampled_from("/%"), children, numbers),
        st.tuples(st.just("table"), children),
    )


LEAVES = st.one_of(st.sampled_from([*EXTENTS, "m", "n", *BELOW]), st.integers(-20, 20))
TREES = st.recursive(LEAVES, combined, max_leaves=8)
NUMBERS = st.tuples(*(st.integers(0, (n or 1000) - 1) for n in EXTENTS.values()))


@st.composite
def points(draw):
    """Values of all variables."""
    values = dict(zip(EXTENTS, draw(NUMBERS), strict=True))
    values |= {"m": draw(st.integers(1, 100)), "n": draw(st.integers(1, 12)) * 8}
    return {
        **values,
        "i": draw(st.integers(0, values["m"] - 1)),
        "j": draw(st.integers(0, values["n"] - 1)),
    }


def built(tree):
    match tree:
        case int():
            return index(tree)
        case "m":
            return M
        case "n":
            return N
        case str():
            return index(tree, BELOW.get(tree) or EXTENTS[tree])
        case ("table", inner):
            return Index(((Entry("table", (built(inner),), below=6), 1),))
        case ("+", left, right):
            return built(left) + built(right)
        case ("-", left, right):
            return built(left) - built(right)
        case ("*", left, right):
            return built(left) * right
        case ("/", left, right):
            return built(left) // right
    return built(tree[1]) % tree[2]


def expected(tree, values):
    match tree:
        case int():
            return tree
        case str():
            return values[tree]
        case ("table", inner):
            return int(TABLE[np.clip(expected(inner, values), 0, len(TABLE) - 1)])
        case ("+", left, right):
            return expected(left, values) + expected(right, values)
        case ("-", left, right):
            return expected(left, values) - expected(right, values)
        case ("*", left, right):
            return expected(left, values) * right
        case ("/", left, right):
            return expected(left, values) // right
    return expected(tree[1], values) % tree[2]


A_POINT = {"a": 7, "b": 0, "c": 0, "d": 47, "m": 9, "n": 16, "i": 8, "j": 15}


@settings(max_examples=300, deadline=None)
@given(TREES, points())
@example(("%", ("%", "d", 6), 4), A_POINT)
@example(("/", ("/", "d", 6), 4), A_POINT)
@example(("%", ("+", ("*", "d", 6), "a"), 4), A_POINT)
@example(("%", ("-", "a", "d"), 4), A_POINT)
@example(("-", ("-", "m", "i"), 1), A_POINT)
def test_simplification_keeps_the_value_and_the_span(tree, values):
    found = built(tree)
    value = expected(tree, values)
    assert value_of(found, values, {"table": TABLE}) == value
    low, high = found.span
    assert low is None or low <= value
    assert high is None or value <= high


@settings(max_examples=150, deadline=None)
@given(TREES, TREES, points())
def test_ordered_sums_have_their_value_in_any_order(left, right, values):
    one, other = built(left), built(right)
    assert total([(one, 1), (other, 1)]) == total([(other, 1), (one, 1)])
    there = value_of(total([(one, 2), (other, -1)], 5), values, {"table": TABLE})
    assert there == 2 * expected(left, values) - expected(right, values) + 5
    assert one.ordered.ordered == one.ordered


@settings(max_examples=150, deadline=None)
@given(TREES, LEAVES, points())
def test_a_value_in_the_place_of_a_variable_is_the_value_there(tree, leaf, values):
    there = {**values, "a": expected(leaf, values)}
    if there["a"] not in range(8):
        return
    found = built(tree).at({"a": built(leaf)})
    assert value_of(found, values, {"table": TABLE}) == expected(tree, there)


def test_operations_that_say_nothing_disappear():
    i, j, w = index("i", 100), index("j", 8), index("w", 32)
    assert (i * 1 + 0).text == "i"
    assert (i // 1).text == "i"
    assert (i % 1).text == "0"
    assert (i * 0).text == "0"
    assert (i - i).text == "0"
    assert ((i * 8 + j) // 8).text == "i"
    assert ((i * 8 + j) % 8).text == "j"
    assert (j % 8).text == "j"
    assert (w // 32).text == "0"
    assert (w % 32).text == "w"
    assert (w // 8 // 2).text == "w / 16"
    assert (w // 8 * 8 + w % 8).text == "w"
    assert (w // 8 * 8 + w // 2 % 4 * 2 + w % 2).text == "w"
    assert ((i * 64 + j) // 128).text == "i / 2"
    assert ((i * 8 + j - 8) // 8).text == "i + -1"
    assert index("1") == index(1)


def test_open_extents_divide_by_their_multiples_and_bound_what_is_below_them():
    i, j = variable("i", M), variable("j", N)
    assert (N // 8).text == "n / 8"
    assert (N // 8 * 8).text == "n"
    assert (N % 8).text == "0"
    assert (N * 3 + 1).text == "3 * n + 1"
    assert ((N + 7) // 8).text == "n / 8"
    assert ((M + 7) // 8).text == "(m + 7) / 8"
    assert (M - i - 1).span == (0, 99)
    assert not (N - j - 1).may_be_negative
    assert (N - j - 2).may_be_negative
    assert N.span == (8, 96)


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [
        (variable("a", 5) * 4 + variable("b", 7), 4, "(b)//4 + a"),
        (variable("a", 5) * 4 + variable("d", 4), 4, "a"),
        (variable("a", 5) * 4 + variable("d", 4), 8, "(a)//2"),
        (variable("a", 5) * 4 - 1, 4, "a - 1"),
        (Index(((Quotient(variable("b", 7), 2), 1),)), 3, "(b)//6"),
    ],
)
def test_quotients_are_removed_as_far_as_extents_allow(dividend, divisor, quotient):
    assert (dividend // divisor).ordered.formula == quotient


def test_remainders_of_what_may_be_negative_are_written_by_quotients():
    i = index("i", 100)
    assert (i - 3).text == "i + -3"
    assert ((i - 3) // 4).text == "((i + 1) / 4) + -1"
    assert (i * -1 // 4).text == "tw_quotient(-1 * i, 4)"
    assert not any(isinstance(atom, Remainder) for atom in ((i * -1) % 4).atoms())


def test_terms_keep_their_order_and_ordered_ones_have_that_of_their_names():
    i, j = index("i", 100), index("j", 8)
    assert (j + i).text == "j + i"
    assert (j + i) != (i + j)
    assert total([(j, 1), (i, 1)]) == i + j
    assert ((j + i) // 3 + i).ordered == ((i + j) // 3).ordered + i


def test_a_divisor_divides_all_values():
    i, j = index("i", 100), index("j", 8)
    assert (i * 12 + j * 8 + 20).divisor == 4
    assert (i * 12 + j * 8).without(["i"]).divisor == 8
    assert Index().divisor == 0


def test_text_is_safe_inside_other_expressions():
    w = index("w", 32)
    assert str(w) == "w"
    assert str(w + 1) == "(w + 1)"
    assert str(w % 8) == "(w % 8)"
    assert str(index("a ? b : c") * 2) == "(2 * (a ? b : c))"
    assert index("a + b").text == "a + b"
    assert (index("a + b") // 4).text == "(a + b) / 4"
    assert Index().text == "0"


def test_an_entry_has_no_text_before_it_is_loaded():
    entry = Index(((Entry("table", (index("i"),)), 1),))
    with pytest.raises(TypeError, match=r"table\[i\] must be loaded"):
        _ = entry.text
    assert entry.replaced(lambda _: index("loaded")).text == "loaded"


def test_products_that_32_bits_do_not_hold_are_of_64():
    worker, row = index("worker", 64), index("row", 1000)
    assert (worker * 30_000_000 + row).text == "30000000 * worker + row"
    assert (worker * 40_000_000 + row * 3).text == "40000000L * worker + 3L * row"
    assert (worker * -40_000_000).text == "-40000000L * worker"
    assert str((worker * 40_000_000 + row) % 2**25) == "((40000000L * worker + row) % 33554432)"


def test_an_index_that_travels_is_the_same_elsewhere():
    place = index("i", 100) // 3 + index("j", 8) * 5
    assert {place: 1}[pickle.loads(pickle.dumps(place))] == 1
    assert "_hash" not in vars(pickle.loads(pickle.dumps(place)))

"""Intervals hold what is computed of any numbers in them, and not much more."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.epilogue.expression import FUNCTIONS as CALLED
from tilewright.spaces.epilogue.expression import parse
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.numerics.interval import Interval, Rules, nowhere
from tilewright.spaces.numerics.numbers import Arrays

UNARY = sorted(name for name in CALLED if FUNCTIONS[name].arity == 1)


def propagated(text: str, low, high, kind: str = "float32") -> Interval:
    numbers = Arrays()
    x = Interval(np.asarray(low, float), np.asarray(high, float), nowhere(numbers))
    with np.errstate(all="ignore"):
        return parse(text).fold(Rules(numbers, kind), {"x": x})


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_any_point_between_is_in_the_interval(name):
    generator = np.random.default_rng(1)
    low = np.concatenate([generator.uniform(-6, 6, 400), generator.uniform(-90, 90, 100)])
    high = low + 10.0 ** generator.uniform(-6, 0.5, low.size)
    found = propagated(f"{name}(x)", low, high)
    for share in np.linspace(0, 1, 41):
        point = low + share * (high - low)
        with np.errstate(all="ignore"):
            value = FUNCTIONS[name].reference(point)
        inside = (found.low <= value) & (value <= found.high)
        assert (inside | np.isnan(value) & np.isnan(found.low) | found.free).all()


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
@pytest.mark.parametrize("whole", [False, True], ids=["any exponent", "whole exponent"])
def test_a_function_of_any_point_of_two_intervals_is_in_the_interval(name, whole):
    generator, numbers = np.random.default_rng(1), Arrays()
    low = generator.uniform(-6, 6, (2, 2000)).round(1)
    wide = 10.0 ** generator.uniform(-6, 0.5, low.shape) * generator.integers(0, 2, low.shape)
    if whole:
        low[1], wide[1] = low[1].round(), 0
    given = [Interval(a, a + w, nowhere(numbers)) for a, w in zip(low, wide, strict=True)]
    with np.errstate(all="ignore"):
        found = Rules(numbers, "float32").call(name, given)
        for shares in generator.uniform(0, 1, (41, 2)):
            value = FUNCTIONS[name].reference(*(low + shares[:, None] * wide))
            inside = (found.low <= value) & (value <= found.high)
            assert (inside | np.isnan(value) & np.isnan(found.low) | found.free).all()
    assert np.mean(found.free) < 0.5


ENDS = np.array([-np.inf, -3e38, -2, -1e-3, 0, 1e-3, 0.5, 2, 3e38, np.inf], "f4").astype("f8")


@pytest.mark.parametrize("operator", [*"+-*/", "pow", "min", "max", "atan2", "fmod"])
def test_an_operation_on_any_points_is_in_the_interval_at_the_edges_too(operator):
    """Infinities, zeros and numbers between meet within intervals, not at their ends alone."""
    numbers, rules = Arrays(), Rules(Arrays(), "float32")

    def operation(x, y):
        named = operator in FUNCTIONS
        return numbers.call(operator, [x, y]) if named else numbers.operation(operator, x, y)

    spans = [(low, high) for n, low in enumerate(ENDS) for high in ENDS[n:]]
    pairs = np.array([(*a, *b) for a in spans for b in spans]).T
    a, b = (Interval(*pairs[n : n + 2], nowhere(numbers)) for n in (0, 2))
    with np.errstate(all="ignore"):
        named = operator in FUNCTIONS
        found = rules.call(operator, [a, b]) if named else rules.binary(operator, a, b)
        for x in ENDS:
            for y in ENDS:
                within = (a.low <= x) & (x <= a.high) & (b.low <= y) & (y <= b.high)
                value = np.float32(operation(x, y))
                inside = (found.low <= value) & (value <= found.high)
                surely = np.isnan(value) & np.isnan(found.low) & np.isnan(found.high)
                assert (inside | surely | found.free | ~within).all(), (x, y)
    assert np.mean(found.free) < 0.95


def test_what_is_infinite_or_zero_stays_known_where_it_is_exact():
    found = propagated("x + 1 / x", [np.inf, 0.0, 2.0], [np.inf, 0.0, np.inf])
    assert found.free.tolist() == [False, True, False]
    found = propagated("relu(x * 0)", [np.inf], [np.inf])
    assert np.isnan(found.low).all()
    assert not found.free.any()


def test_a_sine_of_a_wide_interval_is_anything_between_its_extremes():
    low, high = [1.0, 1e30, 1.0, -np.inf, -np.inf], [8.0, 1e30, 2.0, 0.0, np.inf]
    found = propagated("sin(x)", low, high)
    np.testing.assert_allclose(found.low, [-1, np.sin(1e30), np.sin(1.0), *2 * [np.nan]], 1e-6)
    np.testing.assert_allclose(found.high, [1, np.sin(1e30), 1, *2 * [np.nan]], 1e-6)
    assert found.free.tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu", "abs"])
def test_the_least_value_counts_where_a_function_turns(name):
    (point,) = FUNCTIONS[name].turning
    found = propagated(f"{name}(x)", [point - 0.5], [point + 0.5])
    least = FUNCTIONS[name].reference(np.asarray(point))
    ends = FUNCTIONS[name].reference(np.array([point - 0.5, point + 0.5]))
    assert found.low[0] == pytest.approx(least, abs=1e-6)
    assert found.low[0] < ends.min() - 1e-3
    assert found.high[0] == pytest.approx(ends.max(), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x + 1", 2, 4),
        ("1 - x", -2, 0),
        ("x * x", 1, 9),
        ("-x * 2", -6, -2),
        ("1 / x", 1 / 3, 1),
        ("x / -x", -3, -1 / 3),
        ("min(x, 2)", 1, 2),
        ("max(2, x)", 2, 3),
        ("abs(x - 2)", 0, 1),
        ("bfloat16(x * 1.001)", 1, 3),
    ],
)
def test_operations_take_the_ends_and_add_their_rounding(text, low, high):
    found = propagated(text, [1.0], [3.0])
    assert found.low[0] == pytest.approx(low, rel=1e-6, abs=1e-6)
    assert found.high[0] == pytest.approx(high, rel=1e-6, abs=1e-6)
    assert not found.free


def test_literals_are_rounded_as_code_rounds_them():
    narrow, wide = (propagated("x * 0.1", [1.0], [1.0], kind) for kind in ("float32", "float64"))
    assert (narrow.low + narrow.high)[0] / 2 == float(np.float32(0.1))
    assert (wide.low + wide.high)[0] / 2 == 0.1
    assert (wide.high - wide.low)[0] < 1e-15 < 1e-9 < (narrow.high - narrow.low)[0] < 1e-7


def test_what_is_not_known_stays_so():
    found = propagated("tanh(1 / (x - x)) + 1", [1.0], [1.0])
    assert found.free.all()
    found = propagated("tanh(sqrt(x))", [-1e-9, 1.0, -2.0], [1e-9, 1.5, -1.0])
    assert found.free.tolist() == [True, False, False]
    assert np.isnan(found.low).tolist()[2]
    assert np.isnan(found.high).tolist()[2]


def test_infinities_of_one_kind_are_kept_and_of_two_are_anything():
    found = propagated("exp(x) * 2", [80.0, 200.0], [80.0, 200.0])
    assert np.isfinite(found.high).tolist() == [True, False]
    assert propagated("exp(x) - exp(x * 2)", [200.0], [200.0]).high[0] == np.inf
    assert propagated("1 / exp(x)", [200.0], [200.0]).low[0] <= 0


def test_a_fused_product_that_overflows_alone_may_be_finite_in_a_sum():
    found = propagated("x * 3e38 - 3e38", [1.5], [1.5])
    assert found.low[0] <= 1.5e38
    assert found.high[0] == np.inf


@pytest.mark.parametrize(
    ("element", "kind", "exact"),
    [
        ("float32", "float32", True),
        ("bfloat16", "float32", True),
        ("float64", "float32", False),
        ("int32", "float32", False),
        ("float64", "float64", True),
        ("int32", "float64", True),
    ],
)
def test_operands_are_exact_unless_they_have_more_bits_than_the_type_computed_in(
    element, kind, exact
):
    found = Rules(Arrays(), kind).given(np.array([3.0]), dtype(element))
    assert bool(found.low[0] == found.high[0] == 3.0) is exact
    assert found.low[0] <= 3.0 <= found.high[0]


@pytest.mark.parametrize("low", [1.0, np.nan])
@pytest.mark.parametrize("high", [2.0, np.nan])
@pytest.mark.parametrize("free", [False, True])
def test_an_integer_may_be_anything_where_its_value_is_free_or_not_a_number(low, high, free):
    given = Interval(np.array([low]), np.array([high]), np.array([free]))
    ends = [float(end[0]) for end in Rules(Arrays(), "float32").stored(given, dtype("int8"))]
    anything = free or np.isnan(low) or np.isnan(high)
    assert ends == ([-np.inf, np.inf] if anything else [1.0, 2.0])

"""Ranges of indices against all values that they take."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spaces.language.direct import OPERATIONS
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.bounds import Bounds
from tilewright.spaces.language.tree import AxisValue, Binary, Comparison, Negation, Number

AXES = ("a", "b", "c")
numbers = st.integers(0, 5).map(lambda n: Number(float(n)))
leaves = st.sampled_from(AXES).map(AxisValue) | numbers


def _grown(inner):
    return (
        st.builds(Binary, st.sampled_from("+-"), inner, inner)
        | st.builds(Binary, st.just("*"), numbers, inner)
        | st.builds(Binary, st.sampled_from(["//", "%"]), inner, st.integers(1, 4).map(_number))
        | st.builds(Negation, inner)
    )


def _number(value: int) -> Number:
    return Number(float(value))


indices = st.recursive(leaves, _grown, max_leaves=6)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
conditions = st.builds(Comparison, signs, indices, indices)
extents = st.fixed_dictionaries({axis: st.integers(1, 5) for axis in AXES})


def value(node, at):
    match node:
        case Number(number):
            return int(number)
        case AxisValue(name):
            return at[name]
        case Negation(inner):
            return -value(inner, at)
    return OPERATIONS[node.operator](value(node.left, at), value(node.right, at))


@settings(max_examples=120)
@given(indices, st.lists(conditions, max_size=2), extents)
def test_no_value_that_is_taken_lies_outside(index, bounding, sizes) -> None:
    bounds = Bounds.under(bounding, sizes, {})
    points = [
        dict(zip(AXES, point, strict=True))
        for point in itertools.product(*(range(sizes[axis]) for axis in AXES))
    ]
    taken = [value(index, at) for at in points if all(value(c, at) for c in bounding)]
    if taken:
        low, high = bounds.of(index)
        assert low <= min(taken)
        assert max(taken) <= high
        assert not bounds.empty


@settings(max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(-4, 4), extents)
def test_ends_of_a_sum_of_multiples_are_taken(factors, constant, sizes) -> None:
    index = Number(float(abs(constant)))
    index = Negation(index) if constant < 0 else index
    for factor, axis in zip(factors, AXES, strict=True):
        term = Binary("*", Number(float(abs(factor))), AxisValue(axis))
        index = Binary("-" if factor < 0 else "+", index, term)
    taken = [
        constant + sum(f * x for f, x in zip(factors, point, strict=True))
        for point in itertools.product(*(range(sizes[axis]) for axis in AXES))
    ]
    assert Bounds.under([], sizes, {}).of(index) == (min(taken), max(taken))


@pytest.mark.parametrize(
    "text",
    [
        "where j <= i; y[i] = sum[j](x[i - j])",
        "where j < i; y[i] = sum[j](x[i - j - 1])",
        "where j >= 2; y[i] = sum[j](x[j - 2] * z[i])",
        "where 2 * i + j - 1 >= 0; y[i] = sum[j](x[2 * i + j - 1])",
        "where i + j < 5; x: float32[5]; y[i] = sum[j](x[i + j])",
        "where j == i; x: float32[4]; y[i] = sum[j](x[i - j] + z[j])",
        "x: float32[8]; y[i] = sum[j](x[(i * 8 + j) // 8 % 8] * z[j])",
        "x: float32[5]; y[i] = x[4 * i // 4 + 1]",
        "l: int32[i](index < 9); where j < l[i]; y[i] = sum[j](x[l[i] - j - 1])",
    ],
)
def test_a_condition_keeps_a_read_inside(text: str) -> None:
    made = program(text, **{axis: n for axis, n in {"i": 4, "j": 8}.items() if axis in text})
    if "where" in text:
        bare = "\n".join(line for line in str(made).split("\n") if not line.startswith("where"))
        with pytest.raises(InputError, match="allowed: 0 to"):
            program(bare)


large = st.sampled_from([1, 7, 100003, 16000001, 2**31 + 11])
coarse = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Binary, st.sampled_from("+-"), inner, inner)
        | st.builds(Binary, st.just("*"), large.map(_number), inner)
        | st.builds(Binary, st.sampled_from(["//", "%"]), inner, large.map(_number))
    ),
    max_leaves=6,
)


@settings(max_examples=120)
@given(indices | coarse, extents)
def test_ends_of_any_index_of_few_points_are_taken(index, sizes) -> None:
    points = itertools.product(*(range(sizes[axis]) for axis in AXES))
    taken = [value(index, dict(zip(AXES, point, strict=True))) for point in points]
    assert Bounds.under([], sizes, {}).of(index) == (min(taken), max(taken))


@pytest.mark.parametrize(
    ("index", "extent", "ends"),
    [
        ("d + 1 - 2 * (d % 2)", 80, (0, 79)),
        ("d + 1 - 2 * (d % 2)", 2**20, (0, 2**20 - 1)),
        ("(d + 40) % 80 - 40 + 80 * (d // 40 % 2)", 80, (0, 79)),
        ("d // 3 * 3 + 2 - d % 3", 2**23, (0, 2**23)),
        ("d * 3 // 7 * 7 + d * 3 % 7 - 3 * d", 2**23, (0, 0)),
    ],
)
def test_residues_of_an_axis_are_not_independent_of_it(index, extent, ends) -> None:
    made = program(f"x: float32[{2**31}]; y[d] = x[{index} + 40]", d=extent)
    (read,) = made.stages[0].body.indices
    low, high = Bounds.under([], made.extent, {}).of(read)
    points = range(extent) if extent < 2**10 else (*range(50), *range(extent - 50, extent))
    found = [value(read, {"d": d}) - 40 for d in points]
    assert (low - 40, high - 40) == ends == (min(found), max(found))

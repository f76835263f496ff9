"""What programs compute, against element by element and against NumPy."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.spaces.language import direct
from tests.spaces.language.strategies import programs
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import evaluation, program
from tilewright.spaces.language.inputs import check_inputs, draw


def held_to_direct(text: str, extents: dict[str, int]) -> None:
    try:
        made = program(text, **extents)
    except InputError as error:
        assume(not re.search("leaves no element|bounds|no stage uses", str(error)))
        raise
    inputs = draw(made, 1)
    found = evaluation.evaluate_stages(made, inputs)
    with np.errstate(all="ignore"):
        exact = direct.compute(made, inputs)
    for stage in made.stages:
        shape = made.shape(stage.axes)
        expected = np.array(list(exact[stage.name].values())).reshape(shape)
        assert found[stage.name].shape == shape
        np.testing.assert_allclose(found[stage.name], expected, 1e-9, 1e-12, err_msg=str(made))


@settings(max_examples=30, deadline=None)
@given(programs())
def test_random_programs(drawn) -> None:
    held_to_direct(*drawn)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(programs())
def test_many_random_programs(drawn) -> None:
    held_to_direct(*drawn)


@pytest.fixture(scope="module", autouse=True)
def _in_small_pieces():
    """Every stage of more than a few elements is evaluated in pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "CHUNK", 50)
        yield


def result(text: str, inputs: dict[str, object], **extents: int) -> np.ndarray:
    made = program(text, **extents)
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    check_inputs(made, arrays)
    return evaluation.evaluate(made, arrays)[made.outputs[0].name]


def test_a_sum_of_products_with_gathers_and_repeated_axes() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.random((5, 7)), generator.random((3, 7, 4))
    expert, scale = np.array([0, 0, 2, 2, 2, 1]), generator.random(7)
    row = np.array([4, 3, 2, 1, 0, 0])
    text = (
        "e: int32[t](index < 3); row: int32[t](index < 5)\n"
        "y[t, n, z] = sum[k, o](a[row[t], k] * (b[e[t], k, n] - s[k]) * s[k])"
    )
    inputs = {"e": expert, "row": row, "a": a, "b": b, "s": scale}
    found = result(text, inputs, t=6, n=4, k=7, z=2, o=3)
    expected = 3 * np.einsum("tk,tkn->tn", a[row], (b[expert] - scale[:, None]) * scale[:, None])
    np.testing.assert_allclose(found, np.stack([expected, expected], axis=2), 1e-12)


def test_what_a_condition_leaves_out_is_not_reduced_however_large_it_is() -> None:
    x = np.array([[1.0, np.nan, np.inf], [2.0, 3.0, np.nan], [4.0, 5.0, 6.0]])
    text = "where j < i\ny[i] = {}[j](x[i, j])"
    found = {name: result(text.format(name), {"x": x}, i=3, j=3) for name in ("sum", "max", "prod")}
    np.testing.assert_array_equal(found["sum"], [0, 2, 9])
    np.testing.assert_array_equal(found["max"], [-np.inf, 2, 5])
    np.testing.assert_array_equal(found["prod"], [1, 2, 20])


@pytest.mark.parametrize("body", ["x[i, j] * w[j, k]", "w[j, k] * x[i, j]", "x[i, j] * z[i, j, k]"])
def test_nor_is_it_in_a_sum_of_products(body: str) -> None:
    generator = np.random.default_rng(1)
    outside = np.arange(5) >= np.arange(5)[:, None]
    x = np.where(outside, np.nan, generator.random((5, 5)))
    z = np.where(outside[..., None], np.inf, generator.random((5, 5, 4)))
    w = generator.random((5, 4))
    inputs = {"x": x, "z": z, "w": w}
    inputs = {name: array for name, array in inputs.items() if f"{name}[" in body}
    found = result(f"where j < i; y[i, k] = sum[j]({body})", inputs, i=5, j=5, k=4)
    expected = [
        sum(x[i, j] * (z[i, j] if "z" in body else w[j]) for j in range(i)) for i in range(5)
    ]
    np.testing.assert_allclose(found, np.array([np.zeros(4), *expected[1:]]), 1e-12)


@pytest.mark.parametrize(
    "body", ["x[i,k] * s[i]", "x[i,k] * s[i] * z[k,j]", "s[i] * x[i,k] * z[k,j] * z[k,j]"]
)
@pytest.mark.parametrize("rows", [3, 2000])
def test_terms_are_multiplied_before_they_are_added(body: str, rows: int) -> None:
    """So infinities of both signs give NaN, and the sum of what they are made of does not count."""
    columns = {"j": 60} if "j" in body else {}
    made = program(f"y[{','.join(['i', *columns])}] = sum[k]({body})", i=rows, k=40, **columns)
    rng = np.random.default_rng(0)
    inputs = {o.name: rng.standard_normal(o.shape) for o in made.operands}
    inputs["s"][1] = np.inf
    found = evaluation.evaluate(made, inputs)["y"]
    assert np.isnan(found[1]).all()
    assert np.isfinite(np.delete(found, 1, axis=0)).all()


@pytest.mark.parametrize("infinite", ["no factor", "one row", "one column", "a row and a column"])
@pytest.mark.parametrize("within", ["all", "a factor", "no factor"])
def test_sums_of_products_are_those_of_terms_one_by_one(within: str, infinite: str) -> None:
    """Also where only some rows or columns have infinite terms, and a mask spans no factor."""
    rng = np.random.default_rng(0)
    a, s, b = rng.random((9, 1, 20)) - 0.5, rng.random((9, 1, 1)) - 0.5, rng.random((1, 11, 20))
    if "row" in infinite:
        s[4] = -np.inf
    if "column" in infinite:
        b[0, 3, 7:9] = np.nan, np.inf
    shape = {"a factor": (9, 1, 20), "no factor": (9, 11, 20)}.get(within)
    mask = None if shape is None else rng.random(shape) < 0.7
    grid = dict(zip("ijk", np.ogrid[:9, :11, :20], strict=True))
    with np.errstate(invalid="ignore"):
        found = evaluation.sum_of_products([a, s, b], grid, 2, mask)
    terms = a * s * b
    expected = (terms if mask is None else np.where(mask, terms, 0)).sum(axis=2)
    assert np.isnan(expected).any() == (infinite != "no factor")
    np.testing.assert_allclose(found, expected, 1e-12)


def test_the_lowest_of_equals_is_the_argument_and_among_what_holds() -> None:
    x = np.array([[3, 1, 3, 1], [0, 0, 0, 0], [7, -1, 7, 9]])
    assert result("y[i] = argmax[j](x[i, j])", {"x": x}, i=3, j=4).tolist() == [0, 0, 3]
    assert result("y[i] = argmin[j](x[i, j])", {"x": x}, i=3, j=4).tolist() == [1, 0, 1]
    assert result("y = argmax[i, j](x[i, j])", {"x": x}, i=3, j=4) == 11
    assert result("y = argmax[j, i](x[i, j])", {"x": x}, i=3, j=4) == 11
    assert result("y = argmin[j, i](x[i, j])", {"x": x}, i=3, j=4) == 5
    bounded = result("where j >= 1; y[i] = argmax[j](x[i, j] - x[i, j])", {"x": x}, i=3, j=4)
    assert bounded.tolist() == [1, 1, 1]


def test_whole_numbers_are_exact_and_clipped_to_their_output() -> None:
    large = np.array([2**31 - 1] * 2, dtype=np.int32)
    text = "x: int32[2]\ny = sum[i](x[i] * x[i])"
    assert result(f"{text} % 1000", {"x": large}, i=2) == 2 * (2**31 - 1) ** 2 % 1000
    assert result(text, {"x": large}, i=2) == 2**31 - 1
    assert result("y = -sum[i](x[i])", {"x": large}, i=2).dtype == np.int64


@pytest.mark.parametrize("function", ["relu({})", "abs({})", "floor({})", "max({}, 3)"])
def test_functions_keep_whole_numbers_that_floats_do_not_tell_apart(function: str) -> None:
    near = 2**53 - 1 + np.arange(4)
    text = f"y: int64; y[i] = {function.format(f'i + {2**53 - 1}')}"
    found = result(text, {}, i=4)
    assert found.dtype == np.int64
    assert found.tolist() == near.tolist()


def test_large_whole_constants_do_not_wrap() -> None:
    x, i = np.array([0.5, -1.0]), np.array([3, -2], dtype=np.int32)
    found = result("y[i] = x[i] * (1e10 * 1e10)", {"x": x}, i=2)
    np.testing.assert_array_equal(found, x * 1e20)
    found = result("y[i] = x[i] * (3e9 * 3e9 + 1e18 - 4e18 * 4)", {"x": x}, i=2)
    np.testing.assert_array_equal(found, x * -6e18)
    text = "w: int32[i]\nz[i] = float32(w[i] * (1000000 * 1000000 * 1000000 * 1000000))"
    np.testing.assert_array_equal(result(text, {"w": i}, i=2), i * np.float64(np.float32(1e24)))


def test_casts_round_as_their_dtype_does() -> None:
    x = np.array([1 / 3, 1e4, 6e4])
    found = result("y[i] = float16(x[i])", {"x": x}, i=3)
    np.testing.assert_array_equal(found, x.astype(np.float16).astype(np.float64))


def test_inputs_are_drawn_as_their_operands_say() -> None:
    made = program(
        "e: int32[r](sorted < 3); l: int8[r](index < 6); x: bfloat16[8, 6](order=(1, 0), leading=9)"
        "\ny[r] = sum[k](x[l[r], e[r]] + k)",
        r=50,
        k=2,
    )
    inputs = draw(made, 3)
    check_inputs(made, inputs)
    assert (np.diff(inputs["e"]) >= 0).all()
    assert set(inputs["e"]) == {0, 1, 2}
    assert set(inputs["l"]) == set(range(6))
    assert inputs["x"].dtype == made.operand["x"].element.numpy
    assert inputs["x"].strides == tuple(2 * step for step in made.operand["x"].strides) == (2, 18)
    again = draw(made, 3)
    assert all(np.array_equal(again[name], array) for name, array in inputs.items())


@pytest.mark.parametrize("seed", range(8))
def test_the_least_and_the_greatest_index_are_always_drawn(seed: int) -> None:
    """A length of none is one of a thousand, and what kernels are wrong about first."""
    made = program("n: int32[r](index < 1000)\nwhere k < n[r]\ny[r] = sum[k](x[r,k])", r=4, k=999)
    assert {0, 999} <= set(draw(made, seed)["n"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"e": [0, 2, 1]}, "e is not sorted: it falls after entry 1; allowed: entries that never"),
        ({"e": [0, 1, 3]}, "e holds the index 3; allowed: 0 to 2"),
        ({"e": [-1, 1, 2]}, "e holds the index -1; allowed: 0 to 2"),
        ({"e": [0.0, 1.0, 2.0]}, "e holds float64; allowed: int32"),
        ({"x": [1.0, 2.0]}, r"x has the shape \(2,\); allowed: \(3,\)"),
        ({"z": [1.0]}, "the program has no operand 'z'; operands: e, x"),
        ({"x": None}, "no array for the operand 'x'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message: str) -> None:
    made = program("e: int32[r](sorted < 3); y[r] = x[e[r]]", r=3)
    given = {"e": [0, 1, 2], "x": [1.0, 2.0, 3.0]} | changes
    arrays = {name: np.array(array) for name, array in given.items() if array is not None}
    with pytest.raises(InputError, match=message):
        check_inputs(made, arrays)


def test_the_largest_array_on_the_way_to_a_sum_is_a_factor_if_it_can_be() -> None:
    made = program("y[i,j] = sum[k](x[i + k] * f[k,j])", i=50, j=70, k=3)
    (stage,) = made.stages
    assert evaluation.largest_array(made, stage, made.extent) == 50 * 70
    assert evaluation.largest_array(made, stage, made.extent | {"i": 1}) == 3 * 70
    bounded = program("where k <= i\ny[i,j] = sum[k](x[i + k] * f[k,j])", i=50, j=70, k=3)
    assert evaluation.largest_array(bounded, bounded.stages[0], bounded.extent) == 50 * 70
    mixed = program("where k <= i + j\ny[i,j] = sum[k](x[i + k] * f[k,j])", i=50, j=70, k=3)
    assert evaluation.largest_array(mixed, mixed.stages[0], mixed.extent) == 50 * 70 * 3

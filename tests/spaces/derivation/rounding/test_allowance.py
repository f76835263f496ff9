"""What is allowed of programs, held to float32 arithmetic in any order and to planted mistakes."""

import numpy as np
import pytest

from tests.spaces.derivation.programs import ATTENTIONS, ROWS, attention, rows
from tilewright.spaces.derivation.chains.chain import chain
from tilewright.spaces.derivation.chains.fused import evaluate
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate as exactly
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload


def made(name):
    return attention(name) if name in ATTENTIONS else rows(name)


def in_float32(program, values, seed=0):
    """The outputs, computed in float32 by tiles and parts."""
    over = next(stage.over for stage in program.stages if "j" in stage.over)
    narrow = {n: v.astype(np.float32) if v.dtype.kind == "f" else v for n, v in values.items()}
    order = np.random.default_rng(seed).permutation(program.extent["j"])
    found = evaluate(program, chain(program, over), narrow, np.array_split(order, 3), 4)
    return {output.name: found[output.name] for output in program.outputs}


@pytest.mark.parametrize("name", [*ATTENTIONS, *ROWS])
def test_float32_in_any_order_is_allowed(name):
    program = made(name)
    values = draw(program, 3)
    low, high = allowed(program, values)["y"]
    exact = exactly(program, values)["y"]
    assert agrees(exact, low, high).all()
    assert agrees(in_float32(program, values)["y"], low, high).all()
    assert np.max(high - low) < 1e-3 * max(1.0, np.max(np.abs(exact)))


MISTAKES = {
    "a lost element": lambda text: "where j > 0\n" + text,
    "another constant": lambda text: text.replace("0.00001", "0.01"),
    "no weight": lambda text: text.replace(" * w[j]", ""),
    "another function": lambda text: text.replace("rsqrt(", "sqrt("),
    "a square too few": lambda text: text.replace("x[r,j] * x[r,j]", "x[r,j]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_not_allowed(mistake):
    text = "y[r,j] = x[r,j] * rsqrt(mean[j](x[r,j] * x[r,j]) + 0.00001) * w[j]"
    right = program(text, r=5, j=64)
    wrong = program(MISTAKES[mistake](text), r=5, j=64)
    values = draw(right, 0) | {"x": draw(right, 1)["x"] * 0.1}
    low, high = allowed(right, values)["y"]
    assert agrees(exactly(right, values)["y"], low, high).all()
    given = {operand.name: values[operand.name] for operand in wrong.operands}
    assert not agrees(exactly(wrong, given)["y"], low, high).all()


def test_one_term_of_many_may_not_be_lost():
    right = program("y[r] = sum[j](x[r,j] * w[j])", r=16, j=4096)
    values = draw(right, 0)
    low, high = allowed(right, values)["y"]
    lost = values | {"w": np.where(np.arange(4096) == 17, 0, values["w"]).astype(np.float32)}
    assert agrees(in_float32(right, values)["y"], low, high).all()
    assert agrees(exactly(right, lost)["y"], low, high).mean() < 0.5


def test_probabilities_may_be_rounded_to_the_dtype_of_the_values_they_weigh():
    text = "p[r,j] = softmax[j](x[r,j])\ny[r,m] = sum[j](p[r,j] * v[j,m])\nx: float32[4,50]"
    narrow = program(text + "\nv: bfloat16[50,3]\ny: float32[4,3]", r=4, j=50, m=3)
    wide = program(text, r=4, j=50, m=3)
    values = draw(narrow, 0)
    p = exactly(program(text.split("\n")[0] + "\nx: float32[4,50]", r=4, j=50), values)["p"]
    rounded = p.astype(values["v"].dtype).astype(np.float64) @ values["v"].astype(np.float64)
    assert agrees(rounded, *allowed(narrow, values)["y"]).all()
    exact = values | {"v": values["v"].astype(np.float32)}
    assert not agrees(rounded, *allowed(wide, exact)["y"]).all()


@pytest.mark.parametrize("seed", range(10))
def test_factors_may_be_rounded_once_or_twice_but_no_term_may_be_lost(seed):
    """A product with normalised rows: seven standard deviations of what rounding takes."""
    made = workload("rmsnorm_matmul", m=6, n=256, k=4096, dtype="bfloat16").program
    inputs = draw(made, seed)
    a, weight, b = (inputs[name].astype(np.float64) for name in ("A", "weight", "B"))
    rows = a / np.sqrt((a * a).mean(axis=1, keepdims=True) + 1e-6)
    short = inputs["A"].dtype

    def judged(factor):
        low, high = allowed(made, inputs)["C"]
        return agrees((factor @ b).astype(short), low, high)

    once = (rows * weight).astype(short).astype(np.float64)
    twice = (rows.astype(short).astype(np.float64) * weight).astype(short).astype(np.float64)
    assert judged(once).all()
    assert judged(twice).all()
    kept = np.arange(4096) != np.argmax(np.abs(weight))
    assert not judged(once * kept).all()
    assert judged(once * (np.arange(4096) >= 16)).mean() < 0.6
    assert judged(rows).mean() < 0.1


EIGHT = "p[r,j] = softmax[j](x[r,j])\ny[r,m] = sum[j](p[r,j] * v[j,m])\nx: float32[R,J]\n"


def weighed_in_float8(values, raised=256.0, keys=None):
    """Weights of at most one, rounded once, times the values of these keys."""
    x, v = (values[name].astype(np.float64) for name in "xv")
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    short = (weights * raised).astype(np.float32).astype(values["v"].dtype).astype(np.float64)
    total = weights.sum(axis=1, keepdims=True)
    return (short / raised * (1.0 if keys is None else keys)) @ v / total


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_weights_may_be_rounded_to_float8_but_no_tile_of_them_may_be_lost(kind, scale):
    made = program(f"{EIGHT}v: {kind}[300,16]".replace("R,J", "64,300"), r=64, j=300, m=16)
    for seed in range(4):
        values = draw(made, seed)
        values["x"] = np.random.default_rng(seed).normal(size=(64, 300)).astype(np.float32) * scale
        low, high = allowed(made, values)["y"]
        assert agrees(weighed_in_float8(values), low, high).all()
        lost = weighed_in_float8(values, keys=(np.arange(300) >= 32) * 1.0)
        assert not agrees(lost, low, high).all()
        assert not agrees(weighed_in_float8(values) * 1.5, low, high).all()


def test_weights_below_the_range_of_float8_are_raised():
    """One key has all the weight and nothing to give; the others are small, and many."""
    made = program(f"{EIGHT}v: float8_e4m3fn[1001,1]".replace("R,J", "2,1001"), r=2, j=1001, m=1)
    values = draw(made, 0)
    values["x"] = np.repeat(np.float32([[0, -7.2], [0, -12.6]]), [1, 1000], axis=1)
    values["v"] = np.ones_like(values["v"])
    values["v"][0] = 0
    low, high = allowed(made, values)["y"]
    assert agrees(weighed_in_float8(values), low, high).all()
    assert not agrees(weighed_in_float8(values, raised=1.0), low, high).all()


def test_factors_that_are_all_rounded_alike_are_allowed():
    """Equal weights: each is off by the same share."""
    text = "p[r,j] = softmax[j](x[r,j])\ny[r] = sum[j](p[r,j] * v[j])\nx: float32[4,700]"
    made = program(text + "\nv: bfloat16[700]\ny: float32[4]", r=4, j=700)
    inputs = draw(made, 0)
    inputs["x"] = inputs["x"] * 0
    inputs["v"] = np.abs(inputs["v"])
    weight = np.float32(1 / 700).astype(inputs["v"].dtype).astype(np.float64)
    found = np.full(4, weight * inputs["v"].astype(np.float64).sum())
    assert agrees(found.astype(np.float32), *allowed(made, inputs)["y"]).all()


def test_whole_numbers_and_places_are_exact():
    text = """
    a: int8[4,9]; t: int8[9]
    s[r] = sum[j](a[r,j] * t[j])
    i[r] = argmax[j](x[r,j])
    -> s, i
    """
    made = program(text, r=4, j=9)
    values = draw(made, 0)
    exact = exactly(made, values)
    for name, (low, high) in allowed(made, values).items():
        assert (low == exact[name]).all()
        assert (high == exact[name]).all()


@pytest.mark.parametrize(("reducer", "sign"), [("argmax", 1), ("argmin", -1)])
def test_a_place_may_be_another_where_rounding_decides_it(reducer, sign):
    """Two that differ by less than their error; three; far apart; equal but for certain; NaN."""
    made = program(f"y[r] = {reducer}[j](exp(x[r,j]) * {sign})", r=5, j=5)
    near, least = 1 + 1e-7, -np.inf
    x = np.array(
        [[0, 1, 0, near, 0], [0, 1, near, near, 0], [0, 2, 1, 0, 0], [1, *4 * [least]],
         [0, np.nan, 1, 1, 1]]
    )  # fmt: skip
    low, high = allowed(made, {"x": x.astype(np.float32)})["y"]
    assert low.tolist() == [1, 0, 1, 0, 1]
    assert high.tolist() == [3, 4, 1, 0, 1]
    unknown = program(f"y[r] = {reducer}[j](1 / (1 + {sign} * x[r,j]))", r=1, j=3)
    low, high = allowed(unknown, {"x": -sign * np.array([[0, 1, 0]], np.float32)})["y"]
    assert (low[0], high[0]) == (0, 2)
    given = program(f"y[r] = {reducer}[j](x[r,j])", r=1, j=3)
    low, high = allowed(given, {"x": sign * np.array([[0, 1, 1]], np.float32)})["y"]
    assert (low[0], high[0]) == (1, 1)


@pytest.mark.parametrize("found", ["v[a[r]]", "a[r] // 2 + v[a[r] % 2]", "v[a[r] + 1]"])
def test_what_is_found_at_a_place_may_be_anything_where_the_place_may_be_another(found):
    made = program(f"v: float32[6]; a[r] = argmax[j](exp(x[r,j])); y[r] = {found}", r=2, j=5)
    x = np.array([[0, 1, 0, 1 + 1e-7, 0], [0, 2, 1, 0, 0]], np.float32)
    inputs = {"x": x, "v": np.arange(6, dtype=np.float32)}
    low, high = allowed(made, inputs)["y"]
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert low[1] <= exactly(made, inputs)["y"][1] <= high[1] < low[1] + 1e-5


@pytest.mark.parametrize("reduced", ["sum[j](exp(x[r,j]))", "prod[j](exp(x[r,j]))"])
def test_infinities_are_exact(reduced):
    made = program(f"y[r] = {reduced}; z[r] = -y[r]; -> y, z", r=2, j=3)
    values = {"x": np.array([[1000, 1, 0], [np.nan, 1, 1]], np.float32)}
    found = allowed(made, values)
    for name, infinite in (("y", np.inf), ("z", -np.inf)):
        low, high = found[name]
        assert low[0] == high[0] == infinite
        assert np.isnan([low[1], high[1]]).all()


@pytest.mark.parametrize("reduced", ["sum[j](x[r,j] * x[r,j])", "prod[j](x[r,j])"])
def test_what_is_too_large_for_float32_may_be_infinite(reduced):
    made = program(f"y[r] = log({reduced})", r=1, j=4)
    x = np.full((1, 4), 1.5e19, np.float32)
    low, high = allowed(made, {"x": x})["y"]
    exact = exactly(made, {"x": x})["y"]
    assert agrees(np.log([np.inf]), low, high).all()
    assert agrees(exact, low, high).all()
    assert not agrees(exact - 0.1, low, high).any()


def test_an_element_of_no_known_value_may_be_anything():
    made = program("y[r] = 1 / sum[j](x[r,j])", r=2, j=3)
    values = {"x": np.array([[1, -1, 0], [1, 1, 1]], np.float32)}
    low, high = allowed(made, values)["y"]
    assert low[0] == -np.inf
    assert high[0] == np.inf
    assert np.isfinite(low[1])


def test_a_choice_that_kernels_may_differ_about_allows_both():
    made = program("y[r] = select(exp(x[r]) > 1, 5, 7)", r=2)
    low, high = allowed(made, {"x": np.array([0, 1], np.float32)})["y"]
    assert low.tolist() == [5, 5]
    assert high.tolist() == [7, 5]


def test_rows_without_elements_are_exact():
    made = program("where j < r\ny[r] = sum[j](exp(x[r,j] - max[j](x[r,j])))", r=3, j=3)
    values = draw(made, 0)
    low, high = allowed(made, values)["y"]
    assert low[0] <= 0 <= high[0] < 1e-30
    assert agrees(exactly(made, values)["y"], low, high).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_several_factors_may_be_rounded_once_to_16_bits_where_they_are_multiplied_with_as_many(
    dtype,
):
    made = program("y[i,j] = sum[k](x[i,k] * s[i] * w[k] * b[k,j])", i=3, j=40, k=64, dtype=dtype)
    inputs = draw(made, 1)
    wide = {name: values.astype(np.float64) for name, values in inputs.items()}
    factor = wide["x"] * wide["s"][:, None] * wide["w"]
    short = factor.astype(inputs["b"].dtype if dtype != "float32" else np.float16)
    low, high = allowed(made, inputs)["y"]
    agreeing = agrees(short.astype(np.float64) @ wide["b"], low, high)
    assert agreeing.all() == (dtype != "float32")
    twice = short.astype(np.float64) * (1 + 2.0**-3)
    assert not agrees(twice @ wide["b"], low, high).all()


def test_parts_of_a_sum_may_be_zero_below_the_least_normal_number():
    made = program("y[r] = sum[j](x[r,j] * w[j])", r=2, j=64)
    values = {"x": np.full((2, 64), 1e-20, np.float32), "w": np.full(64, 2.5e-19, np.float32)}
    values["x"][1] *= 1e4
    low, high = allowed(made, values)["y"]
    assert agrees(np.zeros(2, np.float32), low, high).tolist() == [True, False]
    assert agrees(exactly(made, values)["y"], low, high).all()


@pytest.mark.parametrize(("dtype", "least"), [("float16", 2.0**17), ("bfloat16", np.inf)])
def test_a_computed_factor_is_infinite_where_the_dtype_beside_it_cannot_hold_it(dtype, least):
    text = "y[i] = sum[k](x[i,k] * s[i,k] * b[k])"
    made = program(f"x: float32[i,k]\ns: float32[i,k]\n{text}", i=4, k=8, dtype=dtype)
    inputs = draw(made, 1)
    scales = np.array([2.0**15, 2.0**16 - 64, 2.0**17, -(2.0**20)])
    inputs["x"] = np.broadcast_to(scales.astype(np.float32)[:, None], (4, 8)).copy()
    inputs["s"], inputs["b"] = np.ones_like(inputs["s"]), np.zeros_like(inputs["b"])
    low, high = allowed(made, inputs)["y"]
    unknown = abs(scales) >= least
    assert agrees(np.full(4, np.nan), low, high).tolist() == unknown.tolist()
    assert agrees(np.zeros(4), low, high).all()
    assert not agrees(np.ones(4), low, high)[~unknown].any()


@pytest.mark.parametrize("code", ["float4_e2m1", "float8_e4m3fn", "uint4"])
def test_factors_are_not_rounded_to_the_dtype_of_packed_codes(code):
    text = f"q: {code}[n, k](packed); a: bfloat16[m, k]; s: bfloat16[n, k // 32]; "
    right = program(text + "y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // 32])", m=9, n=9, k=128)
    values = draw(right, 0)
    low, high = allowed(right, values)["y"]
    exact = exactly(right, values)["y"]
    assert agrees(exact, low, high).all()
    assert np.median((high - low) / np.abs(exact)) < 0.2

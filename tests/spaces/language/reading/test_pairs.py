"""Complex numbers are pairs of real ones: programs of them, against NumPy in complex128."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.gradients import gradient

SIZES = {"b": 3, "i": 5, "o": 4, "m": 7}
X, W = "x: complex64[b, i, m]; ", "w: complex64[i, o, m]; "
FIRST = "x: complex64[m, b, i]; w: complex64[m, i, o]; "
PLAIN = "x: complex64[b, i]; w: complex64[i, o]; "
PROGRAMS = {
    "modes last": (
        f"{X}{W}y[b,o,m] = sum[i](x[b,i,m] * w[i,o,m])",
        lambda x, w: np.einsum("bim,iom->bom", x, w),
    ),
    "modes first": (
        f"{FIRST}y[m,b,o] = sum[i](x[m,b,i] * w[m,i,o])",
        lambda x, w: np.einsum("mbi,mio->mbo", x, w),
    ),
    "a matrix product": (f"{PLAIN}y[b,o] = sum[i](x[b,i] * w[i,o])", lambda x, w: x @ w),
    "of conjugates": (
        f"{PLAIN}y[b,o] = sum[i](conj(x[b,i]) * (w[i,o] - 2))",
        lambda x, w: x.conj() @ (w - 2),
    ),
    "then a map": (
        f"{PLAIN}s[b,o] = sum[i](x[b,i] * w[i,o]); y[b,o] = s[b,o] * s[b,o] / (3 + w[0,o])",
        lambda x, w: (x @ w) ** 2 / (3 + w[0]),
    ),
    "parts": (
        "x: complex64[b, i]; y[b] = sum[i](real(x[b,i]) * imag(x[b,i]) + abs(x[b,i]))",
        lambda x, w: (x.real * x.imag + abs(x)).sum(1),
    ),
    "a mean": ("x: complex64[b, i]; y[b] = mean[i](-x[b,i] / 2)", lambda x, w: -x.mean(1) / 2),
    "beyond borders": (
        "x: complex64[b, i]; y[b,i] = inside(x[b, i - 1], 0) + select(i < 2, x[b,i], 1)",
        lambda x, w: np.pad(x, ((0, 0), (1, 0)))[:, :-1] + np.where(np.arange(5) < 2, x, 1.0),
    ),
    "a real value": (
        "x: complex64[b, i]; y: complex64[b, i]; y[b,i] = abs(x[b,i])",
        lambda x, w: abs(x) + 0j,
    ),
    "in another order": (
        "x: complex64[b, i](order=(1, 0)); y[i,b] = x[b,i] * x[b,i]",
        lambda x, w: (x * x).T,
    ),
}


def arrays(text: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Complex arrays for the operands, in complex128."""
    generator = np.random.default_rng(seed)
    made = program(text, **used(text))
    return {
        operand.name: generator.standard_normal(operand.shape).view(complex)[..., 0]
        for operand in made.operands
    }


def used(text: str) -> dict[str, int]:
    return {axis: n for axis, n in SIZES.items() if re.search(rf"\b{axis}\b", text)}


def in_parts(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.stack([x.real, x.imag], -1) for name, x in given.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_numpy_does(name: str) -> None:
    text, wanted = PROGRAMS[name]
    given = arrays(text)
    (found,) = evaluate(program(text, **used(text)), in_parts(given)).values()
    expected = wanted(given["x"], given.get("w"))
    if np.iscomplexobj(expected):
        found = found[..., 0] + 1j * found[..., 1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_parts_lie_side_by_side_and_have_the_dtype_of_parts() -> None:
    made = program("x: complex32[i, j](order=(1, 0)); y[i, j] = x[i, j] * x[i, j]", i=4, j=5)
    assert made.operand["x"].shape == (4, 5, 2)
    assert made.operand["x"].strides == (2, 8, 1)
    assert (made.operand["x"].dtype, made.outputs[0].dtype) == ("float16", "float32")
    halves = program("x: complex_bfloat16[i]; y: complex_bfloat16[i]; y[i] = x[i] * x[i]", i=4)
    assert halves.outputs[0].dtype == "bfloat16"
    assert program(halves.text) == halves


def test_products_of_matrices_stay_products() -> None:
    """Four products of real numbers for each of complex ones, two FLOPs each."""
    made = workload("x: complex64[b,i]; w: complex64[i,o]; y[b,o] = sum[i](x[b,i] * w[i,o])",
                    b=8, i=16, o=4)  # fmt: skip
    assert made.flops == 8 * 8 * 16 * 4


def test_gradients_are_those_of_the_parts() -> None:
    """A step along the gradient of a linear function changes it by its square."""
    for name in ("modes last", "modes first", "a matrix product"):
        text, wanted = PROGRAMS[name]
        given = arrays(text)
        made = gradient(program(text, **used(text)), "x,w")
        dy = np.random.default_rng(1).standard_normal((*wanted(**given).shape, 2))
        found = evaluate(made, {**in_parts(given), "dy": dy})
        seed = dy[..., 0] + 1j * dy[..., 1]
        for each in ("x", "w"):
            step = found[f"d{each}"][..., 0] + 1j * found[f"d{each}"][..., 1]
            change = wanted(**given | {each: given[each] + step}) - wanted(**given)
            risen = (seed.conj() * change).real.sum()
            np.testing.assert_allclose(risen, (abs(step) ** 2).sum(), rtol=1e-10)


BAD = {
    "x: complex64[i]; y[i] = exp(x[i])": "exp(x[i]) in stage 'y' is of complex values; allowed: "
    "+ - * /, abs, real, imag, conj and casts",
    "x: complex64[i]; y = max[i](x[i])": "stage 'y' is a max of complex values; allowed: sum",
    "x: complex64[i]; y[i] = select(x[i] > 0, 1, 2)": "x[i] in stage 'y' is complex; allowed: real",
    "x: complex64[i]; where x[i] > 0; y = sum[i](x[i])": "x[i] in 'where x[i] > 0' is complex",
    "x: complex64[i]; y: float32[i]; y[i] = x[i] * 2": "'y' is complex; allowed: complex64, or a",
    "x: complex64[i](leading=9); y[i] = x[i] * 2": "leading of complex64; allowed: order",
    "x: complex64[i](index < 9); y[i] = x[i] * 2": "drawn of complex64; allowed: order",
    "x: complex64[i] = {1}; y[i] = x[i] * 2": "a constant of complex64; allowed: real ones",
    "x: complex128[i]; y[i] = x[i] * 2": "complex128",
    "y[i] = conj(x[i], 2)": "conj with 2 arguments; allowed: 1",
    "t: complex64[i]; y[i] = x[t[i]]": "index 't' is unknown",
}


@pytest.mark.parametrize("text", BAD)
def test_complex_values_where_only_real_ones_are_known_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=re.escape(BAD[text])):
        program(text, i=9)

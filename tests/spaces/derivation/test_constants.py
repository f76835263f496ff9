"""Programs without their constants compute the same, key and work are those of what is left."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.spaces.constant_programs import PRODUCT, PROGRAMS, SIZES, braces, few, with_constant
from tilewright.spaces.derivation.constants import without_constants
from tilewright.spaces.derivation.work import work
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.operators import workload, workload_from_json
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.tables import with_tables


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_programs_without_constants_compute_the_same(name: str, seed: int) -> None:
    made = program(with_constant(PROGRAMS[name], seed))
    inputs = draw(made, seed)
    left = without_constants(made)
    assert not left.constants
    assert "C" not in left.operand
    for output, value in evaluate(made, inputs).items():
        found = evaluate(left, {o.name: inputs[o.name] for o in left.operands})[output]
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)


def test_the_product_is_that_of_numpy() -> None:
    made = program(with_constant(PRODUCT))
    inputs = draw(made, 1)
    elements = few((3, 2, 4)).astype(np.float32)
    wide = {name: inputs[name].astype(np.float64) for name in ("x", "y")}
    found = evaluate(without_constants(made), wide)["z"]
    wanted = np.einsum("ijk,eiu,ej->eku", elements, wide["x"], wide["y"])
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_what_is_zero_vanishes_and_equal_terms_are_one() -> None:
    left = without_constants(
        program(
            "axes e=8, i=3, k=2; C: float32[3,2] = {1,0, 1,0, -2,3}; "
            "z[e,k] = sum[i](C[i,k] * x[e, i // 2])"
        )
    )
    assert str(left.stages[0].body) == "select(k == 0, 2 * x[e, 0] - 2 * x[e, 1], 3 * x[e, 1])"
    same = without_constants(
        program(
            "axes e=8, i=2, k=4; C: float32[2,4] = {2,2,2,2, 0,0,0,0}; "
            "z[e,k] = sum[i](C[i,k] * x[e,i])"
        )
    )
    assert str(same.stages[0].body) == "2 * x[e, 0]"


def test_work_is_that_of_the_terms_that_are_left() -> None:
    """By hand: two products of two factors and of a number each, along 10 x 16 elements, and the
    factor that no element along u changes along 10."""
    left = without_constants(
        program(
            "axes e=10, i=2, j=2, k=3, u=16; "
            "C: float32[2,2,3] = {{{5,0,0},{0,0,0}}, {{0,0,0},{0,7,0}}}; "
            "z[e,k,u] = sum[i,j](C[i,j,k] * x[e,i,u] * y[e,j])"
        )
    )
    found = work(left)
    assert (found.flops, found.arithmetic, found.special) == (0, 2 * (160 + 10), 0)
    summed = work(
        without_constants(
            program(
                "axes e=10, i=4, u=16; C: float32[4] = {0,2,0,0}; "
                "z[e] = sum[u,i](C[i] * x[e,i,u] * y[u])"
            )
        )
    )
    assert summed.flops == 2 * 160


def test_equal_values_have_one_key_however_they_are_written() -> None:
    nested = "axes e=9, i=2, k=2; C: float32[2,2] = {{1, 0}, {0.1, -3}}; "
    flat = "axes e=9, i=2, k=2; D: float32[2,2] = {1.0, -0, 0.10000000149, -3e0}; "
    body = "z[e,k] = sum[i]({}[i,k] * x[e,i])"
    keys = {workload(nested + body.format("C")).key, workload(flat + body.format("D")).key}
    by_hand = "axes e=9, k=2; z[e,k] = select(k == 0, x[e,0] + 0.1 * x[e,1], -(3 * x[e,1]))"
    assert keys == {workload(by_hand).key}
    assert workload(nested.replace("-3", "-3.5") + body.format("C")).key not in keys


def test_workloads_with_constants_come_back_from_json() -> None:
    made = workload(with_constant(PRODUCT))
    again = workload_from_json(made.to_json())
    assert again == made
    assert str(again) == str(made)
    assert workload(str(made)) == made
    assert [a.name for a in made.inputs] == ["x", "y"]


def test_arrays_become_constants() -> None:
    elements = few((3, 2, 4))
    plain = program(PRODUCT, **SIZES)
    made = with_tables(plain, {"C": elements})
    assert without_constants(made) == without_constants(program(with_constant(PRODUCT)))
    assert program(made.text) == made
    with pytest.raises(InputError, match=r"the constant C holds nan; allowed: finite float32"):
        with_tables(plain, {"C": elements * np.nan})
    with pytest.raises(InputError, match=r"C has the shape .*, its table .*; allowed: the same"):
        with_tables(plain, {"C": elements[1:]})


def test_gradients_are_programs_with_the_constant_of_both_orders() -> None:
    """Against differences of the product, which is linear in each of its factors."""
    text = with_constant(PRODUCT)
    made = workload(text)
    inputs = draw(program(text), 3)
    dz = np.random.default_rng(0).standard_normal((7, 4, 19))
    first = gradient(made, "x,y")
    assert first.constants
    found = evaluate(without_constants(first), {**inputs, "dz": dz})
    elements = few((3, 2, 4)).astype(np.float32)
    x, y = inputs["x"].astype(np.float64), inputs["y"].astype(np.float64)
    np.testing.assert_allclose(
        found["dx"], np.einsum("ijk,eku,ej->eiu", elements, dz, y), atol=1e-5
    )
    np.testing.assert_allclose(
        found["dy"], np.einsum("ijk,eku,eiu->ej", elements, dz, x), atol=1e-5
    )
    second = gradient(gradient(text, "x"), "y")
    ddx = np.random.default_rng(1).standard_normal(x.shape)
    (dy,) = evaluate(without_constants(second), {**inputs, "dz": dz, "ddx": ddx}).values()
    np.testing.assert_allclose(dy, np.einsum("ijk,eku,eiu->ej", elements, dz, ddx), atol=1e-5)
    with pytest.raises(InputError, match="C is a constant, which has no gradient"):
        gradient(made, "C")


BAD = {
    "axes e=4, i=2; C: float32[2] = {0, 0}; z[e] = sum[i](C[i] * x[e,i]) + y[e]": "x is "
    "multiplied by zeros of constants alone; remove it",
    "axes e=4, i=2; C: float32[2] = {1, 2}; z[e] = max[i](C[i] * x[e,i])": "z is a max over i of "
    "the constants C; allowed: sum",
    "axes e=4, i=2; C: float32[2] = {1, 2}; where i <= e; z[e] = sum[i](C[i] * x[e,i])": "'where "
    "i <= e' bounds i, an axis of the constants C; allowed: zeros in their place",
    "axes e=4, i=2; C: float32[2] = {1, 2}; where C[i] < x[e]; z[e] = sum[i](y[i])": "'where "
    "C[i] < x[e]' reads the constant C; allowed: select",
    "axes e=4, i=2; C: float32[2] = {1, 2}; q: int32[e, i](index < 2); z[e] = sum[i](C[q[e,i]] * "
    "x[e,i])": "C[q[e, i]] takes its place in the constant C from q; allowed: axes and numbers; "
    "C is an operand where a table chooses its elements",
    "axes e=4; C: float32[2] = {1, 2}; q: int32[e](index < 2); z[e] = x[e] * inside(C[q[e] + 1], "
    "0)": "inside(C[q[e] + 1], 0) takes its place in the constant C from q; allowed: axes and",
    "axes e=70000; C: float32[2] = {1, 2}; z[e] = C[e % 2] * x[e]": "z reads the constants C at "
    "70000 points of e; allowed: 65536; a large one is an operand",
}


@pytest.mark.parametrize("text", BAD)
def test_programs_that_have_no_form_without_constants_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=re.escape(BAD[text])):
        workload(text)


def test_a_constant_that_makes_too_long_a_program_is_refused() -> None:
    large = braces(np.random.default_rng(0).random((26, 26)).round(3))
    text = f"C: float32[26,26] = {large}; z[e,k] = sum[i](C[i,k] * longer_name_of_x[e,i])"
    wanted = r"with C written out the program has \d+ characters; allowed: 16000; a large"
    with pytest.raises(InputError, match=wanted):
        workload(text, e=8, i=26, k=26)

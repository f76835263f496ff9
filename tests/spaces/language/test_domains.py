"""Domains of single reductions are axes of their own, or conditions of the whole program."""

import numpy as np
import pytest

from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw

N = {"i": 4, "j": 5}
CAUSAL = "where j <= i; y[i] = sum[j](x[i, j])"


@pytest.mark.parametrize(
    ("domain", "whole"),
    [
        ("y[i] = sum[j: j <= i](x[i, j])", CAUSAL),
        ("y[i] = sum[j: j <= i](x[i, j]) + 1", "where j <= i; y[i] = sum[j](x[i, j]) + 1"),
        ("where j <= i; y[i] = sum[j: j <= i](x[i, j])", CAUSAL),
        ("y[i] = sum[j: 1 <= j <= i](x[i, j])", f"where 1 <= j; {CAUSAL}"),
        ("y[i, j] = softmax[j: j <= i](x[i, j])", "where j <= i; y[i, j] = softmax[j](x[i, j])"),
        (
            "a[i] = sum[j: j <= i](x[i, j]); b[j] = sum[i: j <= i](x[i, j]); -> a, b",
            "where j <= i; a[i] = sum[j](x[i, j]); b[j] = sum[i](x[i, j]); -> a, b",
        ),
    ],
)
def test_a_domain_of_all_reductions_is_the_condition_of_the_program(
    domain: str, whole: str
) -> None:
    assert str(program(domain, **N)) == str(program(whole, **N))


@pytest.mark.parametrize(
    ("domain", "renamed"),
    [
        (
            "a[i] = sum[j: j <= i](x[i, j]); b[i] = sum[j](x[i, j]); -> a, b",
            "where c <= i; a[i] = sum[c](x[i, c]); b[i] = sum[j](x[i, j]); -> a, b",
        ),
        (
            "a[i] = sum[j: j <= i](x[i, j]); b[i] = sum[j: j > i](x[i, j]); -> a, b",
            "where c <= i; where j > i; a[i] = sum[c](x[i, c]); b[i] = sum[j](x[i, j]); -> a, b",
        ),
        (  # what bounds the program bounds this reduction too
            "where j > 0; a[i] = sum[j: j <= i](x[i, j]); b[i] = max[j](x[i, j]); -> a, b",
            "where j > 0; where c > 0; where c <= i; a[i] = sum[c](x[i, c]); "
            "b[i] = max[j](x[i, j]); -> a, b",
        ),
        (  # another reduction is over the kept axis of the condition
            "a[i] = sum[j: j <= i](x[i, j]); b = sum[i](a[i])",
            "where j <= c; a[c] = sum[j](x[c, j]); b = sum[i](a[i])",
        ),
    ],
)
def test_a_domain_of_one_reduction_is_over_axes_of_its_own(domain: str, renamed: str) -> None:
    made = program(domain, **N)
    used = {axis: extent for axis, extent in (N | {"c": 5}).items() if f"[{axis}]" in renamed}
    used |= {axis: N[axis] for axis in N if axis in renamed}
    used["c"] = N["i"] if "a[c]" in renamed else N["j"]
    assert made.digest == program(renamed, **used).digest
    assert program(str(made)) == made


def test_each_reduction_has_its_own_elements() -> None:
    made = program(
        "a[i] = sum[j: j <= i](x[i, j]); b[i] = sum[j: j > i](x[i, j]); c[i] = sum[j](x[i, j]); "
        "d[j] = max[i: j <= i and i < 3](x[i, j]); -> a, b, c, d",
        i=4, j=3,
    )  # fmt: skip
    inputs = draw(made, 0)
    x = inputs["x"].astype(np.float64)
    causal = np.arange(3) <= np.arange(4)[:, None]
    found = evaluate(made, inputs)
    np.testing.assert_allclose(found["a"], np.where(causal, x, 0).sum(1))
    np.testing.assert_allclose(found["b"], np.where(causal, 0, x).sum(1))
    np.testing.assert_allclose(found["c"], x.sum(1))
    early = causal & (np.arange(4) < 3)[:, None]
    np.testing.assert_allclose(found["d"], np.where(early, x, -np.inf).max(0))


def test_parts_of_a_softmax_share_their_domain_and_their_axes() -> None:
    made = program("p[i, j] = softmax[j: j <= i](x[i, j]); y[i] = sum[j](p[i, j] * v[j])", i=4, j=4)
    assert [stage.over for stage in made.stages if stage.reducer] == [("j2",), ("j2",), ("j",)]
    assert [str(c) for c in made.conditions] == ["j2 <= i"]


def test_tables_bound_one_reduction() -> None:
    text = "row: int32[e](index < 4); "
    one = program(text + "y[i] = sum[e: row[e] == i](x[e]); z = sum[e](x[e]); -> y, z", i=4, e=9)
    inputs = draw(one, 1)
    wanted = np.zeros(4)
    np.add.at(wanted, inputs["row"], inputs["x"].astype(np.float64))
    np.testing.assert_allclose(evaluate(one, inputs)["y"], wanted)


def test_names_of_new_axes_meet_no_other_name() -> None:
    made = program("y[i] = sum[j: j <= i](j2[i, j]) + sum[j](j2[i, j]) + j3", i=4, j=4)
    assert {*made.extent} == {"i", "j", "j4"}
    assert program(str(made)) == made

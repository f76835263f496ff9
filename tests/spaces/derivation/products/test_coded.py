"""Programs that are products with packed codes, and why others are none."""

from __future__ import annotations

import re

import pytest

from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.language.tree import Negation, Number
from tilewright.spaces.operators import workload


def product_of(text: str, q: str = "uint4", **sizes: int) -> CodedProduct | str:
    extents = {"m": 3, "n": 48, "k": 256} | sizes
    found = workload(f"q: {q}[n, k](packed); {text}", **extents)
    return coded_product_of(found.program)


@pytest.mark.parametrize(
    ("text", "group", "zero", "scale"),
    [
        ("y[m, n] = sum[k](a[m, k] * q[n, k])", 256, None, None),
        ("y[m, n] = sum[k](a[m, k] * (q[n, k] - 8) * s[n, k // 64])", 64, "8", "s[n, k // 64]"),
        (
            "y[m, n] = sum[k](a[m, k] * ((q[n, k] - z[n, k // 128]) * s[n, k // 32]))",
            32,
            "z[n, k // 128]",
            "s[n, k // 32]",
        ),
        ("y[m, n] = sum[k](a[m, k] * (q[n, k] - z[n]) * s[n]) + b[n]", 256, "z[n]", None),
        ("y[m, n] = sum[k](a[m, k] * t[q[n, k]] / d[n, k // 16])", 16, None, "1 / d[n, k // 16]"),
    ],
)
def test_parts_are_told_apart(text, group, zero, scale):
    found = product_of(text)
    assert isinstance(found, CodedProduct), found
    assert (found.rows, found.column, found.depth) == (("m",), "n", "k")
    assert found.group == group
    assert (found.zero and str(found.zero)) == zero
    assert (found.scale and str(found.scale)) == scale
    assert str(found.activation) == "a[m, k]"
    assert (found.table is not None) == ("t[" in text)


def test_what_is_added_is_a_zero_point_below_zero():
    found = product_of("y[m, n] = sum[k](a[m, k] * (q[n, k] + 2))", "int3")
    assert isinstance(found, CodedProduct)
    assert found.zero == Negation(Number(2.0))


def test_what_follows_is_a_program_of_the_sums():
    found = product_of("y[m, n] = relu(sum[k](a[m, k] * q[n, k]) * s[n] + b[n])")
    assert isinstance(found, CodedProduct)
    assert found.sums.shape == (3, 48)
    assert [stage.reducer for stage in found.last.stages] == [None] * len(found.last.stages)
    assert "sums[m, n]" in found.last.text


def test_one_group_of_all_the_depth_belongs_to_columns():
    found = product_of("y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // 256])")
    assert isinstance(found, CodedProduct)
    assert (found.scale, found.group) == (None, 256)
    assert "k" not in {axis for stage in found.last.stages for axis in stage.body.axes}


def test_rows_may_be_several_axes_or_none():
    found = product_of("y[b, m, n] = sum[k](a[b, m, k] * g[k] * q[n, k])", b=2)
    assert isinstance(found, CodedProduct)
    assert (found.rows, found.row_count) == (("b", "m"), 6)
    found = workload("q: int2[n, k](packed); y[n] = sum[k](a[k] * q[n, k])", n=16, k=64)
    alone = coded_product_of(found.program)
    assert isinstance(alone, CodedProduct)
    assert (alone.rows, alone.row_count) == ((), 1)


def test_rows_may_choose_their_matrix():
    text = "q: uint4[4, n, k](packed); e: int32[t](index < 4); "
    text += "y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 8) * s[e[t], n, k // 32])"
    found = coded_product_of(workload(text, t=5, n=16, k=64).program)
    assert isinstance(found, CodedProduct)
    assert (str(found.matrix), found.group, found.differs_by_row) == ("e[t]", 32, True)


def test_columns_may_be_any_axis_of_the_output():
    found = product_of("y[n, m] = sum[k](a[m, k] * q[n, k])")
    assert isinstance(found, CodedProduct)
    assert (found.rows, found.column, found.matrix) == (("m",), "n", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y[m, n] = sum[k](a[m, k] * q[n, k // 2 * 2])", r"q is read as q\[n, k // 2"),
        ("y[m, n] = sum[k](a[m, k] * exp(q[n, k]))", r"exp\(q\[n, k\]\) is multiplied; needs"),
        ("y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k])", "differ at each of the depth"),
        (
            "y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // 96])",
            "groups of 96 along k; needs groups",
        ),
        ("y[m, n] = max[k](a[m, k] * q[n, k])", "reduces by max, not a sum"),
        ("y[m, n] = sum[k](a[m, k] * q[n, k]); z[m] = sum[n](y[m, n])", "needs one sum"),
        ("y[m, n] = sum[k](a[m, k] * q[n, k] * (q[n, k] - 1))", "q is in 2 factors; needs one"),
        ("y[n, k] = 2 * q[n, k] + a[n]", "needs one sum"),
    ],
)
def test_other_programs_are_refused_in_words(text, said):
    used = {name: size for name, size in {"m": 3}.items() if name in text.split("=")[0]}
    sizes = {"n": 48, "k": 256} | used
    found = workload(f"q: uint4[n, k](packed); {text}", **sizes)
    reason = coded_product_of(found.program)
    assert isinstance(reason, str)
    assert re.search(said, reason), reason

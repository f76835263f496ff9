"""Families: which axes may be cut into pieces, and which may not."""

from __future__ import annotations

import pytest

from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload

SIZES = as_profile("1-64:1")
PROGRAM = '"{}" i=4 j=8'
PROGRAM_K = PROGRAM + " k=8"


@pytest.mark.parametrize(
    ("text", "axis", "inputs", "outputs"),
    [
        ("matmul n=8 k=4", "m", (0, None), (0,)),
        ("matmul m=9 n=8 k=4", "m", (0, None), (0,)),
        (
            'matmul n=8 k=4 epilogue="relu(x + r[m,n] + b[m] + c[n])"',
            "m",
            (0, None, 0, 0, None),
            (0,),
        ),
        ("matmul m=8 k=4 b=col c=col", "n", (None, 1), (1,)),
        ("softmax c=8", "r", (0,), (0,)),
        ("layernorm c=8", "r", (0, None, None), (0,)),
        (PROGRAM_K.format("y[i, j] = sum[k](a[i, k] * b[k, j])"), "i", (0, None), (0,)),
        (PROGRAM.format("y[i, j] = a[t[i], j]; t: int32[i](index < 9)"), "i", (None, 0), (0,)),
        (
            PROGRAM_K.format("y[i, j] = a[i, j]; z[k] = sum[j](b[k, j]); -> y, z"),
            "i",
            (0, None),
            (0, None),
        ),
    ],
)
def test_axes_that_may_be_cut(text, axis, inputs, outputs):
    family = family_of(text, axis, SIZES)
    assert sorted(map(str, family.inputs)) == sorted(map(str, inputs))
    assert family.outputs == outputs
    assert family.at(5) == workload(text.replace("m=9 ", "").replace("i=4 ", ""), **{axis: 5})


def test_an_outermost_axis_that_is_summed_over_is_not_cut():
    written = PROGRAM_K.format("y[i, j] = sum[k](a[k, i] * b[k, j])")
    for text, inputs in (("matmul m=8 n=8 a=col", (1, 0)), (written, (0, 0))):
        family = family_of(text, "k", SIZES)
        assert (family.independent, family.inputs, family.outputs) == (False, inputs, (None,))


@pytest.mark.parametrize(
    ("text", "axis", "says"),
    [
        ("matmul n=8 k=4", "q", "matmul has no"),
        ("matmul m=8 n=8 k=4", "dtype", "dtype"),
        ("matmul m=8 n=8 k=4", "m k", "is no name"),
        ("matmul m=8 n=8", "k", "k is not the outermost axis of A"),
        ("matmul m=8 k=8", "n", "n is not the outermost axis of B"),
        ("matmul n=8 k=8 a=col", "m", "m is not the outermost axis of A"),
        ("matmul m=3 n=8 k=4", "batch", "A has no dimension batch where batch=1"),
        ("matmul batch=2 n=8 k=8", "m", "m is not the outermost axis of A"),
        ("softmax r=8", "c", "c is not the outermost axis of x"),
        (PROGRAM.format("y[j] = sum[i](x[j, i])"), "i", "not the outermost"),
        (PROGRAM.format("y[j] = sum[i](x[i, j]) / size(i)"), "i", "computes with the extent of i"),
        (PROGRAM.format("s[j] = max[i](x[i, j]); y[i, j] = x[i, j] - s[j]"), "i", "depend on"),
        (PROGRAM.format("y[i, j] = x[i, j] * i"), "i", "depend on each other"),
        (PROGRAM.format("y[i, j] = x[i, j] * size(i)"), "i", "computes with the extent of i"),
        (PROGRAM.format("y[i, j] = inside(x[i - 1, j], 0) + x[i, j]"), "i", "depend on each other"),
        (PROGRAM_K.format("where k <= i; y[i, j] = sum[k](x[i, k, j])"), "i", "in the condition"),
        (PROGRAM.format("y[i, j] = x[i, i] + z[j]"), "i", "not the outermost"),
        ("nothing n=8", "m", "nothing"),
        ("matmul 'n=8", "m", "No closing quotation"),
    ],
)
def test_axes_that_may_not(text, axis, says):
    with pytest.raises(InputError) as refused:
        family_of(text, axis, SIZES)
    assert says in str(refused.value)


def test_workloads_as_objects():
    assert family_of(workload("matmul m=4 n=8 k=4"), "m", SIZES).at(7).extents["m"] == 7
    assert family_of(workload("softmax r=4 c=8"), "r", SIZES).at(7) == workload("softmax r=7 c=8")
    text = "y[i, j] = x[i, j] * 2"
    assert family_of(workload(text, i=3, j=4), "i", SIZES).at(7) == workload(text, i=7, j=4)
    made = program(text, i=3, j=4)
    for given in (made, workload("y[i,j] = sum[k](a[i,k] * b[k,j])", i=2, j=3, k=4), 5):
        with pytest.raises(InputError, match=r"allowed: .*text, such as"):
            family_of(given, "i", SIZES)


def test_the_text_of_a_program_in_lines():
    family = family_of(
        ("# ours\nt[i, j] = x[i, j] * 2\ny[i, j] = t[i, j] + 1\n", {"j": 4}), "i", SIZES
    )
    assert "\n" not in family.operator
    assert family.at(3).extents == {"i": 3, "j": 4}

"""Programs from text: what is read, and how it is written."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Entries, program
from tilewright.spaces.language.evaluation import evaluate

SOFTMAX = ("y[r, c] = softmax[c](x[r, c])", {"r": 4, "c": 16})
CONVOLUTION = (
    """
    x: float32[n, 6, 9, 9]
    y[n,o,p,q] = relu(sum[c,r,s](inside(x[n,c,2*p+r-1,2*q+s-1], 0) * w[o,c,r,s]) + bias[o])
    """,
    {"n": 2, "o": 8, "p": 5, "q": 5, "c": 6, "r": 3, "s": 3},
)
ATTENTION = (
    """
    where j <= i
    p[h,i,j] = softmax[j](sum[d](q[h,i,d] * k[h,j,d]) * 0.5)
    y[h,i,e] = sum[j](p[h,i,j] * v[h,j,e])
    """,
    {"h": 2, "i": 9, "j": 9, "d": 4, "e": 4},
)
LAYERNORM = (
    """
    mean[r] = mean[c](x[r,c])  # of each row
    rstd[r] = rsqrt(var[c](x[r,c]) + 1e-5)
    y[r,c] = (x[r,c] - mean[r]) * rstd[r] * w[c] + b[c]
    -> y, mean, rstd
    """,
    {"r": 4, "c": 8},
)
EXPERTS = (
    """
    expert: int32[t](sorted < 4); row: int32[t](index < 6)
    a: bfloat16[6, k](leading=96)
    w: bfloat16[4, k, n](order=(0, 2, 1))
    y[t,n] = sum[k](a[row[t],k] * w[expert[t],k,n])
    y: float16[t, n](order=(1, 0))
    """,
    {"t": 10, "n": 5, "k": 8},
)
LARGEST = (
    "where c < length[r] and 2 <= c; length: int32[r](index < 9)\n"
    "place[r] = argmax[c](x[r, c])\n"
    "y[r] = select(x[r, 0] > 0.5, -inside(x[r, place[r] - 1], -inf), (1 + x[r, place[r]]) * 2)",
    {"r": 3, "c": 8},
)
EXAMPLES = (SOFTMAX, CONVOLUTION, ATTENTION, LAYERNORM, EXPERTS, LARGEST)


@pytest.mark.parametrize(("text", "extents"), EXAMPLES)
def test_the_written_program_reads_back_as_the_same(text: str, extents: dict[str, int]) -> None:
    made = program(text, **extents)
    again = program(str(made))
    assert again == made
    assert hash(again) == hash(made)
    assert str(again) == str(made)


def test_reductions_inside_an_expression_become_stages() -> None:
    made = program(LAYERNORM[0], **LAYERNORM[1])
    assert [str(stage) for stage in made.stages] == [
        "mean_sum[r] = sum[c](x[r, c])",
        "mean_count = sum[c](1)",
        "mean[r] = mean_sum[r] / mean_count",
        "rstd_sum[r] = sum[c]((x[r, c] - mean_sum[r] / mean_count) "
        "* (x[r, c] - mean_sum[r] / mean_count))",
        "rstd[r] = rsqrt(rstd_sum[r] / mean_count + 1e-05)",
        "y[r, c] = (x[r, c] - mean[r]) * rstd[r] * w[c] + b[c]",
    ]
    assert [output.name for output in made.outputs] == ["y", "mean", "rstd"]


def test_a_reduction_of_a_stage_with_a_long_name_has_a_name_that_reads() -> None:
    name = "y" * 64
    made = program(f"{name}[i] = mean[j](x[i, j]) * max[j](x[i, j])", i=4, j=4)
    assert len({stage.name for stage in made.stages}) == 4
    assert program(str(made)) == made


def test_the_language_is_light_to_import() -> None:
    heavy = "{'torch', 'scipy', 'xgboost', 'sqlalchemy', 'ray'} & set(sys.modules)"
    code = f"import sys, tilewright.spaces.language, tilewright.spaces.named; assert not {heavy}"
    paths = os.pathsep.join(filter(None, sys.path))
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": paths})


def test_a_stage_keeps_the_axes_of_a_condition_that_bounds_it() -> None:
    made = program("where j <= i; y[i] = x[i] / sum[j](z[j])", i=4, j=4)
    assert str(made.stages[0]) == "y_sum[i] = sum[j](z[j])"


def test_arrays_take_dtype_order_leading_dimension_and_drawn_values() -> None:
    made = program(EXPERTS[0], **EXPERTS[1])
    assert [operand.name for operand in made.operands] == ["expert", "row", "a", "w"]
    assert made.operand["expert"].drawn == Entries(4, sorted=True)
    assert made.operand["row"].drawn == Entries(6)
    assert made.operand["a"].strides == (96, 1)
    assert made.operand["w"].strides == (40, 1, 8)
    (output,) = made.outputs
    assert (output.dtype, output.shape, output.strides) == ("float16", (10, 5), (1, 10))


def test_what_no_line_declares_has_the_dtype_asked_for_and_the_shape_that_is_read() -> None:
    made = program("y[i] = x[2 * i + 1] * s", dtype="bfloat16", i=4)
    assert [(o.dtype, o.shape) for o in made.operands] == [("bfloat16", (8,)), ("bfloat16", ())]
    assert made.outputs[0].dtype == "bfloat16"


@pytest.mark.parametrize(
    ("text", "dtype", "result"),
    [
        ("y[i] = sum[k](x[i,k])", "int8", "int32"),
        ("y[i] = mean[k](x[i,k])", "int8", "float32"),
        ("y[i] = sum[k](x[i,k])", "float8_e5m2", "float32"),
        ("y[i] = sum[k](x[i,k])", "tfloat32", "float32"),
        ("y[i] = argmin[k](x[i,k])", "float16", "int32"),
    ],
)
def test_outputs_have_a_dtype_that_holds_them(text: str, dtype: str, result: str) -> None:
    assert program(text, dtype=dtype, i=4, k=8).outputs[0].dtype == result


def test_a_program_is_frozen() -> None:
    made = program(SOFTMAX[0], **SOFTMAX[1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.stages = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("x[i] < 0 or x[i] > 1", lambda x, i: x < 0 or x > 1),
        ("not x[i] < 0", lambda x, i: not x < 0),
        ("not (x[i] < 0 or x[i] > 1) and i != 2", lambda x, i: not (x < 0 or x > 1) and i != 2),
        (
            "(x[i] < 0 or i < 2) and (x[i] > -1 or not i > 3)",
            lambda x, i: (x < 0 or i < 2) and (x > -1 or not i > 3),
        ),
        ("not not 0 < x[i] < 1 or x[i] != x[i]", lambda x, i: 0 < x < 1 or np.isnan(x)),
    ],
)
def test_conditions_are_joined_as_in_python(
    condition: str, meaning: Callable[[float, int], bool]
) -> None:
    made = program(f"y[i] = select({condition}, 1, 0)", i=6)
    values = np.array([-2, -0.5, 0, 0.5, np.nan, 3])
    expected = [int(meaning(x, i)) for i, x in enumerate(values)]
    assert evaluate(made, {"x": values})["y"].tolist() == expected


def test_joined_conditions_are_one_program_however_they_are_written() -> None:
    spelled = program("y[i] = select(x[i] < 0, 1, select(x[i] > 1, 1, 0))", i=6)
    assert program("y[i] = select(x[i] < 0 or x[i] > 1, 1, 0)", i=6).digest == spelled.digest


def test_a_condition_is_joined_of_a_few_alone() -> None:
    many = " or ".join(f"(x[i] > {n} and x[i] < {n + 1})" for n in range(9))
    with pytest.raises(InputError, match="10 times and, or, not; allowed: 8"):
        program(f"y[i] = select({many}, 1, 0)", i=6)

"""Workloads, targets and numbers as users give them: as text, as objects, and wrong."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from tilewright.spaces.epilogue.expression import parse
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload, workload
from tilewright.spaces.target import as_target, detect_target
from tilewright.spaces.validation.checks import positive, whole

HUGE = 10**5000  # Python refuses to write it
FUSED = workload("matmul", m=8, n=16, k=4, a="col", epilogue="relu(x + bias[n]) * 1e-05")


def test_a_workload_is_what_its_text_says():
    assert as_workload(str(FUSED)) == FUSED
    assert as_workload(FUSED) is FUSED
    text = "  matmul m=8 n=16  k=4 'epilogue=relu(x + bias[n]) * 1e-05'"
    assert workload(text, a="col") == FUSED


def test_a_program_is_a_workload_too():
    made = program("y[r, c] = softmax[c](x[r, c])", r=8, c=16)
    assert as_workload(made) == workload("softmax r=8 c=16")
    assert as_workload(program("y[i, j] = sum[k](a[i, k] * b[k, j])", i=4, j=5, k=6)) == workload(
        "matmul m=4 n=5 k=6"
    )


@pytest.mark.parametrize(
    "text", ["y = sum[i](x[i])", "y=max[i](x[i])", "s = sum[i](x[i]); y[i] = x[i] / s"]
)
def test_a_scalar_is_a_program_too(text):
    assert as_workload(f"axes i=9; {text}") == workload(text, i=9)


def test_a_target_is_what_its_text_says():
    target = detect_target("cpu")
    assert as_target("cpu") == target
    assert as_target(target) is target


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (512, "512 is no operator; allowed: text, such as 'matmul m=512"),
        (None, "None is no operator"),
        ("", "unknown operator ''; known: argmax"),
        ("conv m=1", "unknown operator 'conv'"),
        ("matmul 512", "'512' is not a parameter; allowed: name=value"),
        ('matmul m=1 epilogue="relu(x', "No closing quotation"),
        ("matmul m=1 m=2", "'m' is given twice"),
        ("matmul m=1 n=1", "missing: k"),
    ],
)
def test_what_names_no_workload(given, says):
    with pytest.raises(InputError, match="^" + r"[^\n]*$") as caught:
        as_workload(given)
    assert says in str(caught.value)


@pytest.mark.parametrize("given", [7, None, "tpu", "cpu:2", b"cpu", ""])
def test_what_names_no_target(given):
    with pytest.raises(InputError, match=r"unknown target .*; allowed: cpu, cuda"):
        as_target(given)


@pytest.mark.parametrize("threads", ["2", 1.5, 0, -1, True, 10**9])
def test_threads_that_a_cpu_cannot_have(threads):
    with pytest.raises(InputError, match="allowed: whole numbers from 1 to "):
        detect_target("cpu", threads)
    with pytest.raises(InputError, match="is for the target cpu, not cuda:sm_80"):
        detect_target("cuda:sm_80", threads)


@pytest.mark.parametrize("text", ["epilogue", "dtype", "out", "a", "accumulator"])
@pytest.mark.parametrize("value", [None, 3, np.float32, ["x"]])
def test_parameters_that_are_no_text(text, value):
    with pytest.raises(InputError, match=f"{text}=.* is not allowed; allowed: text"):
        workload("matmul", m=1, n=1, k=1, **{text: value})


@pytest.mark.parametrize("size", ["9" * 5000, HUGE, "x" * 5000, -HUGE], ids=range(4))
def test_what_is_wrong_and_long_is_not_repeated_in_full(size):
    with pytest.raises(InputError) as caught:
        workload("matmul", m=size, n=1, k=1)
    assert 20 < len(str(caught.value)) < 160


@pytest.mark.parametrize(
    "size", [np.float32(4.5), np.array(4.5), Fraction(9, 2), 4.5, b"4"], ids=shown
)
def test_no_fraction_is_cut_off(size):
    for text in ("matmul m=1 n=1", "y[k] = x[k]"):
        with pytest.raises(InputError, match=r"k=.* is (not a|no) whole number"):
            workload(text, k=size)


def test_sizes_may_be_numbers_of_numpy():
    for text in ("matmul m=1 n=1", "y[k] = x[k]"):
        assert workload(text, k=np.int64(4)) == workload(text, k=4)


def test_values_are_shown_in_one_short_line():
    assert shown("a\nb") == r"'a\nb'"
    assert shown(np.zeros((4, 4))).count("\n") == 0
    assert len(shown("x" * 999)) < 80
    assert shown(HUGE) == "a int that cannot be shown"


def test_numbers():
    assert whole("trials", np.int64(3), 1) == 3
    assert positive("seconds", np.float32(0.5)) == 0.5
    assert positive("seconds", 2) == 2.0


@pytest.mark.parametrize("value", ["8", 1.5, 0, -3, True, None, float("nan"), [1], HUGE], ids=shown)
def test_what_is_no_whole_number_in_range(value):
    with pytest.raises(InputError, match=r"^trials=.*; allowed: whole numbers from 1 to 99$"):
        whole("trials", value, 1, 99)


@pytest.mark.parametrize(
    "value", ["8", 0, -1.0, True, None, float("nan"), float("inf"), [1], 10**400], ids=shown
)
def test_what_is_no_positive_number(value):
    with pytest.raises(InputError, match=r"^seconds=.*; allowed: finite numbers above 0$"):
        positive("seconds", value)


@pytest.mark.parametrize("text", ["x + 1if x", "x * 2x", "x * 0x10", "x + 1_000", "x + 1.5else"])
def test_a_number_with_letters_is_refused_without_a_warning(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="a number that ends in"):
            parse(text)


@pytest.mark.parametrize(
    "text", ["x + 1e5", "x * .5", "x * 5.", "x + 1.5E-3", "x1 + x", "x / 2e+1", "x+1"]
)
def test_numbers_without_letters_are_accepted(text):
    assert parse(text)

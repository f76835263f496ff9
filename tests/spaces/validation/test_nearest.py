"""Names that nobody has, and the nearest of those that are known."""

from __future__ import annotations

import pytest

from tilewright.scheduler.strategies.registry import factory
from tilewright.scheduler.suites.suite import read_suite
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.validation.nearest import nearest


def test_a_name_is_near_whatever_its_case():
    assert nearest("M", ["m", "n"]) == "m"
    assert nearest("sofmax", ["matmul", "softmax"]) == "softmax"
    assert nearest("conv", ["matmul", "softmax"]) == ""
    assert nearest(7, ["matmul"]) == ""


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: workload("matmull m=4 n=4 k=4"), "matmul"),
        (lambda: workload("sofmax r=4 c=4"), "softmax"),
        (lambda: workload("matmul M=4 n=4 k=4"), "m"),
        (lambda: workload("softmax r=4 c=4 dtpe=float16"), "dtype"),
        (lambda: workload("matmul m=4 n=4 k=4 dtype=flaot32"), "float32"),
        (lambda: workload("matmul m=4 n=4 k=4 dtype=fp16"), "float16"),
        (lambda: workload("y[i] = sigmoyd(x[i])", i=4), "sigmoid"),
        (lambda: factory("evolutionry"), "evolutionary"),
        (lambda: read_suite("bert-bse"), "bert-base"),
    ],
)
def test_the_error_names_what_was_probably_meant(call, near):
    with pytest.raises(InputError, match=rf"did you mean {near}\?"):
        call()

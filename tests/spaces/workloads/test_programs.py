"""Programs that are no products, as workloads."""

import json

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.named import named, names
from tilewright.spaces.operators import workload, workload_from_json

SOFTMAX = "y[r,c] = softmax[c](x[r,c])"


@pytest.mark.parametrize("name", names())
def test_each_named_operator_is_a_workload_that_its_words_and_its_json_give_again(name) -> None:
    found = workload(f"{name} {named(name).example}")
    kept = json.loads(json.dumps(found.to_json()))
    for again in (workload(str(found)), workload_from_json(kept)):
        assert (again, str(again), again.key) == (found, str(found), found.key)
    assert min(found.work, found.least_bytes) > 0
    assert [o.name for o in found.operands] == [o.name for o in (*found.inputs, *found.outputs)]


@pytest.mark.parametrize(
    "text", ["conv2d n=1 c=4 h=9 w=8 o=5 r=3 s=3 padding=1", '"y[r, c] = 2 * x[c, r]" r=6 c=5']
)
def test_people_read_parameters_in_their_order_whatever_a_database_made_of_it(text) -> None:
    found = workload(text)
    kept = json.loads(json.dumps(found.to_json(), sort_keys=True))
    assert str(workload_from_json(kept)) == str(found) == text


def test_the_identity_is_what_a_program_means() -> None:
    by_name = workload("softmax r=6 c=5")
    text = "m[i] = max[j](a[i,j]); out[i,j] = exp(a[i,j] - m[i]) / sum[j](exp(a[i,j] - m[i]))"
    written = workload(text, i=6, j=5)
    assert (by_name, by_name.key, by_name.digest) == (written, written.key, written.digest)
    assert str(written) != str(by_name)
    assert workload(str(written)) == written
    assert workload("softmax r=6 c=7").key != by_name.key
    assert workload("softmax r=6 c=5 dtype=float64").key != by_name.key


def test_a_product_is_one_whatever_it_is_called() -> None:
    product, other = (
        workload(f"y[i,j] = {reducer}[k](a[i,k] * b[k,j])", i=2, j=3, k=4)
        for reducer in ("sum", "max")
    )
    assert str(product) == str(workload("matmul m=2 n=3 k=4"))
    assert product.matmul == workload("matmul m=2 n=3 k=4").matmul
    assert other.matmul is None
    assert other.obstacle == "reductions: max; needs one product of matrices"


def test_figures_follow_from_the_program() -> None:
    found = workload(SOFTMAX, r=6, c=5)
    assert found.flops == 0
    assert found.least_bytes == 2 * 4 * 6 * 5
    assert found.functions == {"exp"}
    assert found.extents == {"r": 6, "c": 5}
    assert (found.accumulator, found.arithmetic) == ("float32", ("float32",))
    assert workload(SOFTMAX, r=6, c=5, dtype="float64").accumulator == "float64"
    first, again = found.make_inputs(3), found.make_inputs(3)
    np.testing.assert_array_equal(first["x"], again["x"])
    assert (first["x"].shape, first["x"].dtype) == ((6, 5), np.float32)


def test_work_is_that_of_stages_not_of_all_axes_together():
    """A call that counts as hung after so much work would else run for hours."""
    found = workload("attention", b=1, h=8, i=64, j=64, d=32)
    assert found.flops == 2 * 2 * 8 * 64 * 64 * 32
    assert found.flops < found.work < 2 * found.flops


@pytest.mark.parametrize(
    "data",
    [
        {"operator": "softmax", "parameters": {}, "program": "y[r] = x[r]"},
        {"operator": "softmax", "parameters": {}, "program": []},
        {"operator": "softmax", "parameters": {}, "program": [3]},
        {"operator": "softmax", "parameters": {"r": [3]}, "program": ["axes r=2", "y[r] = x[r]"]},
        {"operator": "softmax", "parameters": {}, "program": ["import os"]},
        {"operator": "softmax", "parameters": {"q": 3}},
        {"operator": 3, "parameters": {}, "program": ["axes r=2", "y[r] = x[r]"]},
    ],
)
def test_what_describes_no_workload_is_refused(data) -> None:
    with pytest.raises(InputError):
        workload_from_json(data)


def test_a_program_is_rated_by_what_bounds_it():
    image = {"n": 1, "h": 14, "w": 14, "r": 3, "s": 3, "padding": 1}
    layer = workload("conv2d", c=64, o=64, **image)
    assert layer.rate(1e-3) == (layer.flops / 1e6, "GFLOP/s")
    depthwise = workload("conv2d", c=64, o=64, groups=64, **image)
    assert depthwise.rate(1e-3) == (depthwise.least_bytes / 1e6, "GB/s")

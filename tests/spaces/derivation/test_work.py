"""Numbers of points, operations and bytes, against counting them one by one."""

import numpy as np
import pytest

from tests.spaces.derivation.programs import attention
from tilewright.spaces.derivation.domain import needed, points
from tilewright.spaces.derivation.points import Points
from tilewright.spaces.derivation.work import work
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload

CONDITIONS = [
    "j <= i",
    "j < i - 2 and i - j < 5",
    "i == 2*j + 1",
    "j != i",
    "3*i - 2*j >= 1",
    "j // 3 <= i // 2",
    "(i + j) % 4 == 1",
    "b + 2*j > i and i >= 3",
    "i <= 5 and i > 1",
    "j / 2 <= i * 0.25",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_points_where_conditions_hold_are_counted(condition):
    made = program(f"where {condition}\ny = sum[b,i,j](x[b,i,j])", b=2, i=9, j=8)
    axes = ("b", "i", "j")
    grid = dict(zip(axes, np.indices([made.extent[a] for a in axes]), strict=True))
    holds = [Points({}, grid).value(c) for c in made.conditions]
    assert points(made, axes, made.conditions) == np.logical_and.reduce(holds).sum()


def test_points_are_counted_of_extents_that_could_not_be_tried():
    made = program("where j <= i and i - j < 4096\ny[i] = sum[j](x[j])", i=2**17, j=2**17)
    full = 2**17 * 4096 - 4096 * 4095 // 2
    assert points(made, ("i", "j"), made.conditions) == full


def test_a_stage_is_needed_where_what_reads_it_is_bounded():
    made = attention("prefill_causal")
    where = {name: [str(c) for c in found] for name, found in needed(made).items()}
    assert where == {
        "p_sum": ["j <= i + 0"],
        "p_max": [],
        "p_sum2": [],
        "p": ["j <= i + 0"],
        "y": [],
    }


def test_terms_outside_a_condition_are_no_flops():
    causal, whole = work(attention("prefill_causal")), work(attention("prefill_global"))
    pairs = 33 * 34 // 2
    assert causal.flops == 4 * pairs * 2 * (8 + 2)
    assert whole.flops == 4 * 33 * 33 * 2 * (8 + 2)
    assert causal.bytes == whole.bytes
    assert causal.special == 2 * 4 * pairs


def test_a_product_has_the_flops_and_bytes_of_its_workload():
    made = program("C[m,n] = sum[k](A[m,k] * B[k,n])", m=5, n=6, k=7)
    known = workload("matmul", m=5, n=6, k=7)
    found = work(made)
    assert (found.flops, found.bytes) == (known.flops, known.least_bytes)
    assert (found.arithmetic, found.special) == (0, 0)


def test_operations_are_counted_once_where_they_can_be():
    made = program("y[r,c] = exp(x[r,c] - s[r] * s[r]) * exp(s[r])", r=3, c=10)
    found = work(made)
    assert (found.flops, found.special, found.arithmetic) == (0, 30 + 3, 3 + 30 + 30)


def test_no_more_of_a_table_is_read_than_is_gathered():
    text = "t: float16[1000, d]\nid: int32[r](index < 1000)\ny[r,c] = t[id[r], c]"
    made = program(text.replace("[1000, d]", "[1000, 8]").replace("[r](", "[4]("), r=4, c=8)
    assert work(made).bytes == 4 * 8 * 2 + 4 * 4 + 4 * 8 * 4

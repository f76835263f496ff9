"""The Hopper template of two products that share a factor: what it serves, and its decisions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.hopper_pairs.template import HopperPairs
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

H200 = detect_target("cuda:sm_90a")
GATED = "gated_matmul m=512 n=1024 k=256 dtype=bfloat16"
SERVED = (
    GATED,
    "gated_matmul m=16 n=200 k=72 dtype=float16",
    '"y[i,j] = silu(sum[k](a[i,k] * g[j,k]) + b[j]) * sum[k](a[i,k] * u[j,k]) + r[i,j]" '
    "i=130 j=72 k=136 dtype=bfloat16",
)
TWO = '"y[i,j] = silu(sum[k](a[i,k] * g[k,j])) * sum[k]({} * u[k,j])" i=64 j=64 k=64 dtype=bfloat16'
REFUSED = {
    "matmul m=64 n=64 k=64 dtype=bfloat16": "it is one product of matrices",
    "softmax r=8 c=8": "needs two products that share a factor",
    TWO.format("c[i,k]"): "needs two products that share a factor",
    "gated_matmul m=64 n=64 k=64": "A is float32; allowed:",
    "gated_matmul m=64 n=63 k=64 dtype=bfloat16": "126 bytes apart; TMA needs 16s",
}


class TestHopperPairs(TemplateContract):
    template = HopperPairs

    def served(self):
        return [(workload(text), H200) for text in SERVED]

    def refused(self):
        others = [(workload(GATED), detect_target(name)) for name in ("cpu", "cuda:sm_80")]
        return [*others, *((workload(text), H200) for text in REFUSED)]


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(HopperPairs.refuses(workload(text), H200))


def test_a_pair_may_be_written_either_way_round():
    text = '"y[i,j] = sum[k](a[i,k] * u[k,j]) * silu(sum[k](g[k,j] * a[i,k]))" i=64 j=64 k=64'
    assert HopperPairs.refuses(workload(f"{text} dtype=bfloat16"), H200) is None


def test_several_kernels_are_tried_beside_it():
    assert list(space_for(workload(GATED), H200).templates) == ["hopper_pairs", "staged"]


def test_one_launch_multiplies_by_both_matrices():
    work = workload(GATED)
    space = Space(work, H200, [HopperPairs(work, H200)])
    for row in space.sample(np.random.default_rng(0), 64):
        schedule = space.schedule(row)
        (launch,) = space.lower(schedule).call.launches
        by_array = {spec.operand: spec for spec in launch.tensor_maps}
        assert {"A", "gate", "up"} <= by_array.keys()
        assert by_array["gate"].box == by_array["up"].box

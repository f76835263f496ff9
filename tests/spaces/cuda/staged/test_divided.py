"""The CUDA template that divides programs where it is predicted to cost least."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import check_all_right
from tilewright.measure.cuda.emulator import Emulator
from tilewright.spaces.cuda.staged.template import CudaDivided
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
ATTENTION = "attention b=1 h=4 kv=2 i=40 j=40 d=16 mask=causal dtype=bfloat16"
SERVED = {
    "attention, of y": (ATTENTION, "q,k,v", "y"),
    "attention": (ATTENTION, "q,k,v", ""),
    "layernorm": ("layernorm r=300 c=136 dtype=bfloat16", "x,weight,bias", "mean,rstd"),
}
KERNELS = {
    "attention, of y": [["y_max", "y_sum2"], ["dq", "dk", "dv"]],
    "attention": [["y_max", "y_sum2", "y"], ["dq", "dk", "dv"]],
    "layernorm": [["dx"], ["dweight", "dbias"]],
}


def asked(name: str) -> Workload:
    return workload_of(gradient(*SERVED[name]))


class TestCudaDivided(TemplateContract):
    template = CudaDivided

    def served(self) -> list[tuple[Workload, Target]]:
        return [(asked(name), H200) for name in SERVED]

    def refused(self) -> list[tuple[Workload, Target]]:
        texts = ["matmul m=8 n=8 k=8", "softmax r=8 c=8", "gated_matmul m=16 n=16 k=16"]
        targets = [(workload(text), H200) for text in texts]
        return [*targets, (asked("attention"), detect_target("cpu"))]


@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_gradient(name: str) -> None:
    made = asked(name)
    space = Space(made, H200, [CudaDivided(made, H200)])
    rows = space.sample(np.random.default_rng(1), 2)
    with Emulator() as emulator:
        check_all_right(emulator, [(made, space.lower(space.schedule(row))) for row in rows])


@pytest.mark.parametrize("name", SERVED)
def test_parts_write_what_costs_least_as_arrays(name: str) -> None:
    parts = CudaDivided(asked(name), H200).parts
    assert [[o.name for o in part.program.outputs] for part in parts] == KERNELS[name]
    assert "divided" in space_for(asked(name), H200).templates

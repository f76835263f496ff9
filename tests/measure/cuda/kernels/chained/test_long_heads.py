"""Heads that are longer than tiles: of 256, and keys of 576 whose first 512 are values, too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.covering import few
from tests.measure.cuda.emulator.planting import check_right
from tests.spaces.chained_programs import made
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
GROUPED = (
    "where j <= i + 60\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * 0.06) * v[b,h // 2,j,e])"
)
LATENT = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,j,d]) * 0.04) * k[b,j,e])"
HEADS = {
    "256": (GROUPED, 256, 256),
    "576 and 512": (LATENT, 576, 512),
}


def space_of(name: str, template: type, i: int) -> Space:
    text, depth, width = HEADS[name]
    found = made(text, ("float16", "bfloat16")[i % 2], b=1, i=i, j=70, d=depth, e=width)
    work = Workload("program", (), found, "")
    return Space(work, H200, [template(work, H200)])


@pytest.mark.parametrize("count", few(2, of=5))
@pytest.mark.parametrize(
    ("name", "template", "i"),
    [
        ("256", CudaChained, 20),
        ("256", CudaChained, 1),
        ("256", ChainedHopper, 70),
        ("576 and 512", CudaChained, 1),
        ("576 and 512", CudaChained, 18),
    ],
)
def test_random_schedules_agree(emulator, name, template, i, count):
    space = space_of(name, template, i)
    rows = space.sample(np.random.default_rng(i), 64)[:count]
    kernels = [space.lower(space.schedule(row)) for row in rows]
    emulator.build(kernels)
    for turn, kernel in enumerate(kernels):
        check_right(emulator, (space.workload, kernel), turn)


def test_longer_heads_than_an_instruction_multiplies_are_left_to_other_templates():
    work = space_of("576 and 512", CudaChained, 1).workload
    assert ChainedHopper.refuses(work, H200) == "d has 576 points; allowed: up to 256"

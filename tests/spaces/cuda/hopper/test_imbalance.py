"""How many tiles the busiest multiprocessor gets, beside the tiles that blocks really take."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
WORKS = {
    "product": workload("matmul", m=6272, n=512, k=1024, dtype="float16", b="col"),
    "batch": workload("matmul", batch=24, m=600, n=520, k=64, dtype="bfloat16", b="col"),
}


def space_of(work: Workload) -> Space:
    return Space(work, H200, [Hopper(work, H200)])


def most_turns(plan: HopperPlan) -> int:
    """Places that the busiest multiprocessor takes, empty ones too, if blocks are dealt out."""
    grid, taken = plan.grid, Counter()
    for cluster in range(grid.clusters):
        for rank in range(grid.cluster_size):
            block = cluster * grid.cluster_size + rank
            turns = len(range(cluster, grid.work, grid.clusters))
            taken[block % H200.multiprocessors] += turns
    return max(taken.values())


@pytest.mark.parametrize("name", WORKS)
def test_the_busiest_takes_as_many_turns_as_the_grid_says(name):
    space = space_of(WORKS[name])
    population = space.sample(np.random.default_rng(0), 100)
    template = space.templates["hopper"]
    found = space.quantities(population)
    tiles = found["tile_visits"] / H200.multiprocessors
    busiest = found["imbalance"] * np.maximum(tiles, 1)
    for row, turns in zip(population, busiest, strict=True):
        schedule = space.schedule(row)
        plan = HopperPlan(template.sizes, H200, schedule.values)
        assert turns == pytest.approx(most_turns(plan), abs=1e-6)


def test_clusters_that_stick_out_may_take_another_turn():
    """33 tiles by 4 are 132, but 34 in pairs: on an H200 36 us and 17, and 29 and 16."""
    space = space_of(WORKS["product"])
    values = space.schedule(space.sample(np.random.default_rng(0), 1)[0]).values
    tile = {"swap_ab": False, "block_m": 192, "block_n": 128, "blocks_per_sm": 1, "splits": 1}
    tile |= {"merge": "add", "raster": "along_columns", "raster_group": 1}
    columns = {name: np.array([value, value]) for name, value in (values | tile).items()}
    columns["cluster"] = np.array(["1x1", "2x1"])
    found = space.templates["hopper"].quantities(columns)["imbalance"]
    assert found.tolist() == [1, 2]

"""The CUDA template for maps: its space, its rules and its quantities."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.maps.sizes import MapSizes, loops_inside, width
from tilewright.spaces.cuda.maps.template import CudaMap
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

TARGET = cuda_target("sm_90a")
TRANSPOSED = "y[j, i] = relu(x[i, j] + b[i])"
MAPS = {
    "a transposition": workload(TRANSPOSED, i=300, j=200, dtype="bfloat16"),
    "a permutation": workload("y[a, c, b] = x[a, b, c]", a=5, b=64, c=96),
    "halves": workload("rope", b=2, t=16, h=8, d=64),
    "gathered rows": workload("embedding", t=100, d=64, words=500, dtype="float16"),
    "a line": workload("swiglu", r=30, c=501),
    "a few elements": workload("y[j, i] = x[i, j]", i=3, j=5),
}


def space_of(w: Workload) -> Space:
    return Space(w, TARGET, [CudaMap(w, TARGET)])


@pytest.mark.parametrize("name", MAPS)
def test_quantities_are_complete_and_possible(name):
    quantities = checked_quantities(space_of(MAPS[name]), seed=0, schedules=200)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()


def test_quantities_count_what_schedules_do():
    """By hand: an exponential and a sum for each element, which is written to shared memory and
    read there once."""
    w = workload("y[j, i] = exp(x[i, j]) + b[i]", i=64, j=32)
    space = space_of(w)
    rows = space.sample(np.random.default_rng(0), 50)
    found = space.quantities(rows)
    assert (found["useful_flops"] == 2 * 64 * 32).all()
    for place, schedule in enumerate(map(space.schedule, rows)):
        tile = schedule["tile_rows"] * schedule["tile_columns"]
        covered = space.lower(schedule).call.launches[0].grid[0] * tile
        assert found["epilogue_elements"][place] == covered
        assert found["register_bytes"][place] == 2 * 4 * covered
        assert found["packing_bytes"][place] == 0
    assert (found["middle_footprint"] == found["middle_fraction"] * TARGET.l2_bytes).all()
    assert (found["middle_footprint"] > 0).all()


@pytest.mark.parametrize("name", MAPS)
def test_threads_have_whole_vectors_and_blocks_fit(name):
    space = space_of(MAPS[name])
    for row in space.sample(np.random.default_rng(1), 50):
        schedule = space.schedule(row)
        sizes = MapSizes(space.templates["map"].plane, schedule.values)
        covered = sizes.chunks * sizes.threads * sizes.vector
        assert covered == schedule["tile_rows"] * schedule["tile_columns"]
        launch = space.lower(schedule).call.launches[0]
        assert launch.shared_bytes == sizes.shared_bytes <= TARGET.shared_per_block
        assert launch.grid[0] == sizes.tiles


def test_a_block_does_both_halves_of_what_is_turned_against_itself():
    plane = CudaMap(MAPS["halves"], TARGET).plane
    (halves,) = loops_inside(plane)
    assert halves.extent == 2
    assert loops_inside(CudaMap(MAPS["a permutation"], TARGET).plane) == ()


def test_vectors_are_as_wide_as_all_steps_allow():
    (read, *_) = (plane := CudaMap(MAPS["a transposition"], TARGET).plane).transposed
    assert width(plane, read, 16) == 8  # 16 bytes of bfloat16, 200 columns of x
    assert width(plane, plane.view.outputs[0], 16) == 4  # 300 of y
    odd = CudaMap(workload("y[j, i] = x[i, j]", i=301, j=203), TARGET).plane
    assert width(odd, odd.transposed[0], 16) == 1


def test_names_and_writing_make_no_difference_to_the_space():
    spaces = [
        space_of(workload(TRANSPOSED, i=300, j=200)),
        space_of(workload("v[q, p] = relu(c[p] + u[p, q])", p=300, q=200)),
    ]
    rows = [space.sample(np.random.default_rng(0), 50) for space in spaces]
    assert spaces[0].count() == spaces[1].count() > 100
    assert (rows[0] == rows[1]).all()


def test_every_rule_refuses_something_and_says_why():
    huge = workload("y[j, i] = x[i, j]", i=2**17, j=2**17, dtype="bfloat16")
    assert silent_rules(map(space_of, (*MAPS.values(), huge)), 600) <= {"grid"}


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a map reduces nothing"),
        (workload("softmax", r=4, c=8), "a map reduces nothing"),
        (workload("map", m=4, n=8, expression="x[m, n] + 1", dtype="float64"), "float64"),
        (workload("map", m=4, n=8, expression="x[m, n] * 2", dtype="int8"), "int8"),
        (workload("y: float32[4, 8](leading=9); y[i, j] = x[i, j]", i=4, j=8), "slice"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in CudaMap.why_not(w, TARGET)


def test_float8_needs_hardware_that_converts_it():
    w = workload("y: float8_e4m3fn; y[j, i] = x[i, j]", i=64, j=64)
    assert CudaMap.why_not(w, TARGET) is None
    assert "float8" in CudaMap.why_not(w, cuda_target("sm_80"))

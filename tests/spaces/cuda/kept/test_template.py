"""The CUDA template along kept axes: its space, its rules and its quantities."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.cuda.kept.sizes import KeptSizes, width
from tilewright.spaces.cuda.kept.template import CudaKept
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

TARGET = cuda_target("sm_90a")
DEPTHWISE = {"r": 3, "s": 3, "padding": 1, "layout": "NHWC"}
PROGRAMS = {
    "halves": workload("conv2d", n=2, c=96, h=56, w=56, o=96, groups=96, dtype="float16",
                       **DEPTHWISE),
    "pooling": workload("max_pool2d", n=8, c=64, h=112, w=112, r=3, stride=2, padding=1),
    "columns": workload("y[c] = sum[r](x[r, c])", r=60000, c=1000),
    "few columns": workload("y[c] = max[r](x[r, c])", r=60000, c=3, dtype="bfloat16"),
    "large windows": workload("avg_pool2d", n=1, c=3, h=40, w=200, r=15, padding=7),
}  # fmt: skip


def space_of(w: Workload) -> Space:
    return Space(w, TARGET, [CudaKept(w, TARGET)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_quantities_are_complete_and_possible(name):
    quantities = checked_quantities(space_of(PROGRAMS[name]), seed=0, schedules=200)
    assert (quantities["flops"] >= quantities["useful_flops"]).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_task_has_a_thread_and_parts_meet(name):
    space = space_of(PROGRAMS[name])
    for row in space.sample(np.random.default_rng(1), 12):
        schedule = space.schedule(row)
        sizes = KeptSizes(space.templates["kept"].view, schedule.values)
        call = space.lower(schedule).call
        grid = call.launches[0].grid[0]
        assert (
            grid * schedule["threads"]
            >= sizes.tasks * schedule["reduction_threads"] * schedule["splits"]
        )
        assert len(call.launches) == 1
        assert bool(call.workspace_bytes) == bool(call.workspace_zeroed) == (schedule["splits"] > 1)
        parts = schedule["reduction_threads"] > 1 or schedule["splits"] > 1
        assert bool(call.launches[0].shared_bytes) == parts


def test_vectors_are_as_wide_as_all_steps_allow():
    view = CudaKept(PROGRAMS["halves"], TARGET).view
    (output,) = view.outputs
    assert width(view, output, 16) == 8
    odd = CudaKept(workload("y[c] = sum[r](x[r, c])", r=60, c=102), TARGET).view
    (read,) = odd.reads.values()
    assert width(odd, read, 16) == 2


def test_threads_without_a_task_and_few_bytes_asked_for_keep_no_memory_busy():
    """Of 32 columns in vectors of 4, a block of 256 threads that share nothing has 8 at work."""
    work = workload("y[c] = sum[r](x[r, c])", r=1 << 20, c=32)
    template = CudaKept(work, TARGET)
    names = (
        "vector",
        "coarsening",
        "unroll",
        "prefetch",
        "threads",
        "reduction_threads",
        "splits",
    )
    rows = [(4, 1, 0, 2, 256, 1, 132), (4, 1, 0, 8, 256, 1, 132), (4, 1, 0, 8, 256, 32, 132)]
    columns = {
        n: np.array(values) for n, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    columns |= {
        "coarsened_axis": np.array(["none"] * 3),
        "stores": np.array(["streaming_stores"] * 3),
    }
    busy = template.quantities(columns)["worker_fraction"]
    assert busy[1] == pytest.approx(4 * busy[0])
    assert busy[0] < 0.02
    assert busy[2] > 0.9


def quantities_of(w: Workload, **columns: object) -> dict[str, np.ndarray]:
    """Of schedules whose decisions differ where ``columns`` list several values."""
    usual = {
        "vector": 1,
        "coarsened_axis": "none",
        "coarsening": 1,
        "unroll": 0,
        "prefetch": 4,
        "threads": 256,
    }
    usual |= {"reduction_threads": 1, "splits": 1, "stores": "cached"}
    arrays = np.broadcast_arrays(*map(np.array, (usual | columns).values()))
    return CudaKept(w, TARGET).quantities(dict(zip(usual | columns, arrays, strict=True)))


def test_the_last_block_takes_in_all_others_number_by_number():
    """Sums of columns on an H200: 142 us where a thread has 8 numbers of 264 parts to take in, and
    38 where 16 threads share those of 66."""
    work = workload("y[c] = sum[r](x[r, c])", r=65536, c=1024, dtype="bfloat16")
    found = quantities_of(work, vector=[8, 4], reduction_threads=[1, 16], splits=[264, 66])
    assert (found["synchronisations"] > [6 * 264 * 8, 6 * 5 * 4]).all()
    assert found["synchronisations"][1] < 200


def test_lanes_whose_windows_lie_apart_find_more_lines():
    """Every second element of 4 bytes: a warp's loads touch two lines, or eight of 4 lanes each."""
    work = workload("max_pool2d", n=32, c=64, h=112, w=112, r=3, stride=2, padding=1)
    found = quantities_of(work, vector=[1, 4], unroll=2)["instructions"]
    assert found[1] > 2 * found[0]


def test_every_rule_refuses_something_and_says_why():
    batches = workload("y[n, c] = sum[r](x[n, r, c])", n=64, r=4096, c=64, dtype="float16")
    small = cuda_target("sm_86")
    spaces = [Space(batches, small, [CudaKept(batches, small)]), *map(space_of, PROGRAMS.values())]
    assert silent_rules(spaces, 200) <= {"grid"}


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "reductions"),
        (workload("y: float64; x: float64; y[j] = sum[i](x[i, j])", i=4, j=8), "float64"),
        (workload("t: int32[5](index < 9); y[j] = sum[i](x[t[i], j])", i=5, j=8), "a table"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in CudaKept.why_not(w, TARGET)


@pytest.mark.parametrize("share", [2, 4, 8])
def test_several_outputs_of_a_channel_are_served_where_images_lie_in_rows(share):
    w = workload("conv2d", n=2, c=3, h=9, w=9, o=3 * share, groups=3, r=3, s=3)
    assert CudaKept.why_not(w, TARGET) is None

"""The space of Hopper schedules: its size, its rules in words, its resources and its orders."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.kernels.hopper.hopper_problems import USUAL, drawn, small_target
from tilewright.spaces.cuda.hopper.grid import PersistentGrid, hilbert
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper.sizes import HopperSizes, group_registers
from tilewright.spaces.cuda.hopper.split import WAYS
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import NO_PREFERENCE, Space
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.product import orient

HOPPER = cuda_target("sm_90a")
LARGE = workload("matmul", m=8192, n=8192, k=8192, dtype="bfloat16")


def space_of(**parameters: int | str) -> Space:
    made = workload("matmul", **parameters)
    return Space(made, HOPPER, [Hopper(made, HOPPER)])


def named(space: Space, values: dict[str, Value]) -> Schedule:
    """With the first value of what is not named."""
    decisions = space.templates["hopper"].decisions
    return Schedule("hopper", tuple((d.name, values.get(d.name, d.values[0])) for d in decisions))


@pytest.fixture(scope="module")
def large() -> Space:
    return Space(LARGE, HOPPER, [Hopper(LARGE, HOPPER)])


def test_a_large_product_has_thousands_of_schedules(large):
    found = 0
    for block in large.blocks(1 << 12):
        found += len(block)
        if found >= 5000:
            break
    assert found >= 5000


@pytest.mark.parametrize(("m", "n", "k"), [(4096, 128256, 4096), (131072, 65536, 64)])
def test_however_large_a_product_is_it_has_schedules(m, n, k):
    space = space_of(m=m, n=n, k=k, dtype="bfloat16", b="col")
    found = [space.schedule(row) for row in space.sample(np.random.default_rng(0), 200)]
    assert len(found) == 200
    assert {256, 128} <= {schedule.values["block_m"] for schedule in found}


@pytest.mark.parametrize("stages", [3, 4])
def test_the_known_good_schedule_is_in_the_space(large, stages):
    values = {**USUAL, "block_n": 256, "cluster": "2x1", "stages": stages}
    values |= {"producer_registers": 24, "in_flight": 1}
    assert named(large, values) in large
    assert group_registers(2, 24) == 240


def test_registers_moved_are_registers_there_are():
    for consumers, kept in ((2, 24), (2, 40), (2, 56), (3, 32), (3, 56)):
        groups = consumers + 1
        at_launch = 65536 // (groups * 128) // 8 * 8
        assert kept + consumers * group_registers(consumers, kept) <= groups * at_launch


CASES = (
    {"m": 8192, "n": 8192, "k": 8192, "dtype": "bfloat16"},
    {"m": 100, "n": 100, "k": 128, "dtype": "float16", "b": "col"},
    {"m": 2048, "n": 512, "k": 64, "dtype": "bfloat16"},
    {"m": 40, "n": 65536, "k": 512, "dtype": "bfloat16"},
    {"m": 65536, "n": 65536, "k": 64, "dtype": "bfloat16"},
)


def test_every_rule_refuses_something_and_says_why():
    assert not silent_rules([space_of(**parameters) for parameters in CASES], 100)


CLUSTERS: dict[str, Value] = {"merge": "cluster"}


def test_rules_count_what_kernels_take():
    exchanging = drawn(20, 5, 4, (8, 16, 32), CLUSTERS, 4)
    for made, schedule, kernel in [*drawn(40, 3), *exchanging]:
        (launch,) = kernel.call.launches
        sizes = HopperSizes(orient(made.matmul))
        columns = {name: np.array([value]) for name, value in schedule.decisions}
        assert sizes.shared_bytes(columns)[0] == launch.shared_bytes
        assert sizes.threads(columns)[0] == launch.block[0]
        assert launch.grid[0] % launch.cluster[0] == 0
        multiprocessors = 4 if schedule["merge"] == "add" else 32
        assert launch.grid[0] <= multiprocessors * schedule["blocks_per_sm"]


def test_blocks_that_share_a_multiprocessor_find_room():
    for _, schedule, kernel in drawn(20, 7, 4, (4, 8), {"blocks_per_sm": 2}, 4):
        (launch,) = kernel.call.launches
        threads, shared = launch.block[0], launch.shared_bytes
        assert 2 * (shared + 1024) <= HOPPER.shared_per_multiprocessor
        assert f"__launch_bounds__({-(-threads // 128) * 128}, 2)" in kernel.source.body
        assert "tw::registers_" not in kernel.source.body
        consumers = schedule["consumers"]
        assert 2 * 128 * (consumers + 1) * group_registers(consumers, 0, 2) <= 65536


def test_exchanged_sums_have_room_of_their_own():
    for made, schedule, kernel in drawn(20, 6, 4, (8, 16, 32), CLUSTERS, 4):
        plan = HopperPlan(HopperSizes(orient(made.matmul)), small_target(32), schedule.values)
        columns = {name: np.array([value]) for name, value in schedule.decisions}
        sizes = HopperSizes(orient(made.matmul))
        sent, barrier = 4 * plan.tile[0] * plan.slice_columns * (plan.sharers[1] - 1), 8
        assert plan.slices.bytes == sent
        assert sizes.exchange_bytes(columns)[0] == sent + barrier
        assert sizes.shared_bytes(columns)[0] == sizes.ring_bytes(columns)[0] + sent + barrier
        assert plan.received_at % 16 == plan.exchanged_at % 8 == 0
        assert kernel.call.launches[0].shared_bytes <= HOPPER.shared_per_block
        assert kernel.call.workspace_bytes == 0


def test_sums_that_find_no_room_are_foreseen():
    space = space_of(m=512, n=512, k=8192, dtype="bfloat16")
    column = 1 + [d.name for d in space.templates["hopper"].decisions].index("merge")
    wishes = np.full((1000, space.width), NO_PREFERENCE, dtype=np.int32)
    wishes[:, column] = WAYS.index("cluster")
    made = space.complete(wishes, np.random.default_rng(0), attempts=1)
    assert len(made) > 950  # without foresight a fifth ends in vain
    assert np.mean(made[:, column] == wishes[0, column]) > 0.9


def test_equal_schedules_make_equal_kernels_and_others_others():
    some = drawn(12, 4)
    for made, schedule, kernel in some:
        again = Hopper(made, small_target(int(kernel.call.launches[0].grid[0]))).lower(schedule)
        assert again.call.entry == kernel.call.entry
    assert len({kernel.call.entry for *_, kernel in some}) == len({(w, s) for w, s, _ in some})


def test_quantities_are_there_and_make_sense(large):
    population = large.sample(np.random.default_rng(1), 500)
    found = large.quantities(population)
    assert set(found) == set(QUANTITIES)
    for name, values in found.items():
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (found["flops"] >= found["useful_flops"]).all()
    assert (found["near_fraction"] <= 1).all()
    assert (found["register_fraction"] <= 1).all()
    assert (found["main_bytes"] >= LARGE.least_bytes).all()


def test_steps_of_matrices_may_be_two_slabs_deep_and_those_of_windows_one(large):
    deep = {**USUAL, "depth": 128}
    assert Schedule("hopper", tuple(deep.items())) in large
    refused = large.why_not(Schedule("hopper", tuple({**deep, "stages": 4}.items())))
    assert "4 stages of 65536 bytes" in (refused or "")
    conv = workload("conv2d n=1 c=64 h=8 w=8 o=64 r=3 s=3 layout=NHWC dtype=float16")
    assert Hopper(conv, HOPPER).choices()[9].values == (32, 64)


def test_a_cluster_loads_less(large):
    alone = {**USUAL, "block_n": 256, "producer_registers": 24}
    rows = large.rows([named(large, {**alone, "cluster": c}) for c in ("1x1", "2x1", "1x2")])
    near = large.quantities(rows)["near_bytes"]
    assert near[1] == pytest.approx(near[0] * (128 + 128) / 384)
    assert near[2] == pytest.approx(near[0] * (64 + 256) / 384)


def test_sums_exchanged_in_a_cluster_go_through_no_memory():
    space = space_of(m=64, n=4096, k=8192, dtype="bfloat16", b="col")
    shared = {**USUAL, "block_m": 64, "consumers": 1, "producer_registers": 0, "splits": 2}
    ways = [{**shared, "splits": 1}, shared, {**shared, "merge": "cluster"}]
    found = space.quantities(space.rows([named(space, w) for w in ways]))
    assert found["packing_bytes"].tolist() == [0, 10 * 4 * 64 * 4096, 5 * 4 * 64 * 4096]
    assert found["synchronisations"].tolist() == [0, 1, 0]
    assert found["parallelism"].tolist() == [32, 64, 64]


def test_two_blocks_on_a_multiprocessor_are_twice_as_many():
    space = space_of(m=64, n=8192, k=4096, dtype="bfloat16", b="col")
    alone = {**USUAL, "block_m": 64, "block_n": 32, "consumers": 1, "producer_registers": 0}
    pairs = [alone, {**alone, "blocks_per_sm": 2}]
    found = space.quantities(space.rows([named(space, p) for p in pairs]))
    assert found["parallelism"].tolist() == [132, 256]
    assert found["near_fraction"][1] == 2 * found["near_fraction"][0]


SMALL = {**USUAL, "block_m": 64, "block_n": 64, "consumers": 1, "producer_registers": 0}


@pytest.mark.parametrize(
    ("m", "changes", "words"),
    [
        (64, {"raster": "along_rows"}, "1 x 32 tiles have one order"),
        (64, {"raster_group": 2}, "1 x 32 tiles have one order"),
        (128, {"schedule": "pingpong", "consumers": 2}, "nothing to take turns with"),
        (128, {"splits": 2, "merge": "cluster", "raster_group": 2}, "bands may stick out"),
        (
            128,
            {"splits": 2, "merge": "cluster", "stages": 12, "store_buffers": 4},
            "take 8200 bytes of shared memory, all of it 237772; 232448 are allowed",
        ),
    ],
)
def test_what_says_nothing_leaves_gaps_or_finds_no_room_is_refused(m, changes, words):
    space = space_of(m=m, n=2048, k=4096, dtype="bfloat16", b="col")
    assert named(space, SMALL) in space
    refused = named(space, {**SMALL, **changes})
    assert words in (space.why_not(refused) or "")


REFUSED = (
    ({"dtype": "bfloat16", "k": 100}, "rows of A are 200 bytes apart"),
    ({"dtype": "bfloat16", "n": 100}, "rows of B are 200 bytes apart"),
    ({"dtype": "float8_e4m3fn"}, "B is float8_e4m3fn and does not run along k"),
    ({"dtype": "tfloat32", "b": "row"}, "B is tfloat32 and does not run along k"),
    ({"dtype": "float32"}, "A is float32; allowed: float16"),
    ({"dtype": "bfloat16", "out": "int32"}, "the output is int32"),
)


@pytest.mark.parametrize(("parameters", "words"), REFUSED)
def test_what_cannot_be_served_is_refused_in_words(parameters, words):
    made = workload("matmul", **{"m": 128, "n": 128, "k": 128, **parameters})
    assert words in (Hopper.refuses(made, HOPPER) or "")


def test_older_gpus_are_refused():
    assert "sm_90a" in (Hopper.refuses(LARGE, cuda_target("sm_80")) or "")


def test_what_tma_cannot_load_is_served_by_another_template():
    space = space_for(workload("matmul", m=64, n=64, k=65, dtype="bfloat16"), HOPPER)
    assert "hopper" not in space.templates


def test_an_output_that_tma_cannot_store_is_stored_directly():
    space = space_of(m=64, n=100, k=128, dtype="bfloat16", b="col")
    values = {**USUAL, "block_m": 64, "block_n": 64, "consumers": 1, "producer_registers": 0}
    assert named(space, {**values, "store_buffers": 0}) in space
    with pytest.raises(InputError, match="rows of C are 200 bytes apart"):
        space.lower(named(space, values))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 8), (5, 9), (16, 3), (1, 40)])
def test_a_hilbert_order_visits_every_tile_once(rows, columns):
    order = list(zip(*(axis.tolist() for axis in hilbert(rows, columns)), strict=True))
    assert sorted(order) == [(r, c) for r in range(rows) for c in range(columns)]


def test_a_hilbert_order_goes_from_neighbour_to_neighbour():
    rows, columns = hilbert(32, 32)
    assert (abs(np.diff(rows)) + abs(np.diff(columns)) == 1).all()


def test_a_hilbert_order_is_of_the_least_square_that_holds_all():
    order = [list(zip(*(axis.tolist() for axis in hilbert(n, n)), strict=True)) for n in (2, 4)]
    assert order[0] == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert order[1][:4] == [(0, 0), (0, 1), (1, 1), (1, 0)]


def test_a_grid_fills_the_multiprocessors_with_whole_clusters():
    grid = PersistentGrid((64, 32), (2, 1), 128, 1, "along_rows", 4, 131)
    assert (grid.clusters, grid.blocks) == (65, 130)
    few = PersistentGrid((3, 1), (2, 1), 128, 1, "along_rows", 1, 132)
    assert (few.shape, few.blocks) == ((2, 1), 4)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"epilogue": "x + r[m, n]"}, True),
        ({"epilogue": "x + r[m, n]", "out": "float32"}, True),
        ({"epilogue": "x + bias[n]"}, False),
        ({"epilogue": "x + r[m, n]", "c": "col"}, False),  # lies otherwise than the output
        ({"epilogue": "x + r[m, n]", "n": 100}, False),  # rows that TMA cannot move
    ],
)
def test_what_lies_as_the_output_does_may_be_fetched(changes, known):
    space = space_of(**{"m": 512, "n": 512, "k": 64, "dtype": "bfloat16", "b": "col", **changes})
    names = [decision.name for decision in space.templates["hopper"].decisions]
    assert ("fetch" in names) == known
    if not known:
        return
    values = {**USUAL, "block_n": 128, "store_buffers": 1, "fetch": True}
    reason = space.why_not(named(space, values)) or ""
    assert "needs a buffer for each" in reason
    rows = space.sample(np.random.default_rng(0), 400)
    assert 10 < sum(bool(space.schedule(row)["fetch"]) for row in rows) < 390

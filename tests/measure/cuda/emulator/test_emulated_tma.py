"""TMA boxes, mbarrier phases, clusters: against NumPy, and against their misuse."""

from __future__ import annotations

import numpy as np
import pytest

from measure.cuda.emulator import INTERLEAVINGS, Emulator, Interleaving
from measure.records.measurement import ErrorKind
from spaces.cuda.tensor_map import TensorMapSpec
from spaces.kernel import WORKSPACE
from tests.measure.cuda.cuda_kernels import (
    EAGER,
    kernel,
    operand,
    outcomes,
    output_of,
    small_integers,
)


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as made:
        yield made


def clipped(source: np.ndarray, x: int, y: int, box: tuple[int, int]) -> np.ndarray:
    """The box [rows, columns] at (x, y) of a matrix, zeros where there is none."""
    out = np.zeros((box[1], box[0]), source.dtype)
    for r in range(box[1]):
        for c in range(box[0]):
            if 0 <= y + r < source.shape[0] and 0 <= x + c < source.shape[1]:
                out[r, c] = source[y + r, x + c]
    return out


def unswizzled(image: np.ndarray, row_bytes: int, swizzle: int) -> np.ndarray:
    """Dense rows of a box from its image in shared memory, piece by piece of 16 bytes."""
    out = np.empty_like(image)
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    for piece in range(len(image) // 16):
        home = piece ^ (piece // 8 & mask)
        out[piece * 16 : piece * 16 + 16] = image[home * 16 : home * 16 + 16]
    return out.reshape(-1, row_bytes)


LOAD = """
  const u32 s = tw::shared_base(), b = s + {bytes};
  if (threadIdx.x == 0) {{
    tw::mbarrier_init(b, 1);
    tw::fence_barrier_init();
    tw::tma_prefetch(&map);
    tw::mbarrier_arrive_expect(b, {bytes});
    tw::tma_load_{rank}d(s, &map, b, {at});
  }}
  tw::sync_block();
  tw::mbarrier_wait(b, 0);
  for (int i = threadIdx.x; i < {bytes}; i += 32) C[i] = tw::load_shared<i8>(s + i);"""

SHAPE = (21, 40)  # rows, columns of float16: 80 bytes a row


PLACES = [(0, 0), (16, 8), (32, 16), (-8, -3), (40, 0), (8, 100)]
LOADS = [(at, EAGER) for at in PLACES] + [(PLACES[2], mode) for mode in INTERLEAVINGS[1:]]


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("at", "mode"), LOADS, ids=str)
def test_a_load_is_a_clipped_and_swizzled_box(emulator, at, mode, swizzle):
    source = small_integers(1, SHAPE, np.float16)
    columns = (swizzle or 64) // 2
    spec = TensorMapSpec("A", "float16", (40, 21), (80,), (columns, 16), swizzle)
    body = LOAD.format(bytes=spec.box_bytes, rank=2, at="at[0], at[1]")
    inputs = {"A": source, "at_": np.array(at, np.int32)}
    made = kernel(
        f"load{swizzle}",
        "const int at[] = {at_[0], at_[1]};" + body,
        inputs,
        operand("C", "int8", (spec.box_bytes,)),
        shared=spec.box_bytes + 8,
        maps={"map": spec},
    )
    image = output_of(emulator.run(made, inputs, mode)).view(np.uint8)
    rows = unswizzled(image, columns * 2, swizzle).view(np.float16)
    np.testing.assert_array_equal(rows, clipped(source, *at, spec.box))


def test_a_load_in_three_dimensions(emulator):
    source = small_integers(2, (3, 6, 16), np.float32)
    spec = TensorMapSpec("A", "float32", (16, 6, 3), (64, 384), (8, 4, 2))
    made = kernel(
        "load3",
        LOAD.format(bytes=spec.box_bytes, rank=3, at="8, 4, 2"),
        {"A": source},
        operand("C", "int8", (spec.box_bytes,)),
        shared=spec.box_bytes + 8,
        maps={"map": spec},
    )
    image = output_of(emulator.run(made, {"A": source})).view(np.float32).reshape(2, 4, 8)
    expected = np.zeros((2, 4, 8), np.float32)
    expected[0, :2] = source[2, 4:, 8:]
    np.testing.assert_array_equal(image, expected)


def test_a_box_of_five_dimensions_is_loaded_and_stored(emulator):
    """Beyond the array, a load gives zeros, and a store writes nothing."""
    source = small_integers(4, (2, 3, 2, 3, 8), np.float32)
    steps = tuple(source.strides[3::-1])
    box = (8, 2, 2, 2, 1)
    common = ("float32", (8, 3, 2, 3, 2), steps, box)
    maps = {"map": TensorMapSpec("A", *common), "into": TensorMapSpec("C", *common)}
    load = LOAD.format(bytes=256, rank=5, at="0, 2, 0, 1, 1").split("for (int i")[0]
    move = """
  tw::fence_async();
  tw::sync_block();
  if (threadIdx.x == 0) {
    tw::tma_store_5d(&into, s, 0, 1, 0, 2, 0);
    tw::tma_commit();
    tw::tma_wait<0>();
  }"""
    out = operand("C", "float32", source.shape)
    made = kernel("five", load + move, {"A": source}, out, shared=264, maps=maps)
    result = output_of(emulator.run(made, {"A": source}))
    expected = np.full_like(source, np.nan)
    expected[0, 2, :, 1:] = 0
    expected[0, 2, :, 1] = source[1, 1, :, 2]
    np.testing.assert_array_equal(result, expected)


def test_a_box_of_four_dimensions_is_stored(emulator):
    source = small_integers(5, (2, 3, 2, 8), np.float32)
    maps = {
        "into": TensorMapSpec("C", "float32", (8, 2, 3, 2), source.strides[2::-1], (8, 2, 1, 1))
    }
    move = """
  const u32 s = tw::shared_base();
  if (threadIdx.x < 16) tw::store_shared(s + threadIdx.x * 4, A[threadIdx.x]);
  tw::fence_async();
  tw::sync_block();
  if (threadIdx.x == 0) {
    tw::tma_store_4d(&into, s, 0, 0, 2, 1);
    tw::tma_commit();
    tw::tma_wait<0>();
  }"""
    out = operand("C", "float32", source.shape)
    made = kernel("four", move, {"A": source}, out, shared=64, maps=maps)
    result = output_of(emulator.run(made, {"A": source}))
    expected = np.full_like(source, np.nan)
    expected[1, 2] = source[0, 0]
    np.testing.assert_array_equal(result, expected)


WINDOWED = {"lower": (-1, -2), "upper": (-1, 0), "steps": (2, 1)}


def pixels(source: np.ndarray, first: tuple[int, int, int], tap: tuple[int, int]) -> np.ndarray:
    """16 pixels [n, h, w] of images, the walk of :data:`WINDOWED` written out, at an offset."""
    images, height, width = source.shape[:3]
    walk = [
        (w, h, n)
        for n in range(images + 2)
        for h in range(-2, height)
        for w in range(-1, width - 1, 2)
    ]
    out = np.zeros((16, source.shape[3]), source.dtype)
    for row, (w, h, n) in enumerate(walk[walk.index(first) :][:16]):
        x, y = w + tap[0], h + tap[1]
        if 0 <= x < width and 0 <= y < height and n < images:
            out[row] = source[n, y, x]
    return out


@pytest.mark.parametrize("first", [(-1, -2, 0), (3, 1, 0), (1, 4, 1)])
@pytest.mark.parametrize("tap", [(0, 0), (2, 1), (1, 3)])
def test_pixels_follow_each_other_from_border_to_border(emulator, first, tap):
    source = small_integers(3, (2, 5, 7, 16), np.float16)
    strides = (32, 7 * 32, 35 * 32)
    spec = TensorMapSpec("A", "float16", (16, 7, 5, 2), strides, (16, 16), 32, **WINDOWED)
    numbers = ", ".join(f"at_[{i}]" for i in range(5))
    inputs = {"A": source, "at_": np.array([*first, *tap], np.int32)}
    made = kernel(
        "pixels",
        LOAD.format(bytes=512, rank="im2col_4", at=f"0, {numbers}"),
        inputs,
        operand("C", "int8", (512,)),
        shared=520,
        maps={"map": spec},
    )
    image = output_of(emulator.run(made, inputs, EAGER)).view(np.uint8)
    found = unswizzled(image, 32, 32).view(np.float16)
    np.testing.assert_array_equal(found, pixels(source, first, tap))


def test_a_box_is_not_loaded_by_a_map_of_windows(emulator):
    source = small_integers(3, (2, 5, 7, 16), np.float16)
    strides = (32, 7 * 32, 35 * 32)
    spec = TensorMapSpec("A", "float16", (16, 7, 5, 2), strides, (16, 16), 32, **WINDOWED)
    made = kernel(
        "mistaken",
        LOAD.format(bytes=512, rank=4, at="0, 0, 0, 0"),
        {"A": source},
        operand("C", "int8", (512,)),
        shared=520,
        maps={"map": spec},
    )
    assert "another kind" in emulator.run(made, {"A": source}, EAGER).error_text


STORE = """
  const u32 s = tw::shared_base();
  for (int i = threadIdx.x; i < 256; i += 32)
    tw::store_shared(s + i * 4, tw::load_global(A + i));
  tw::fence_async();
  tw::sync_warp();
  if (threadIdx.x == 0) {
    {OPERATION}
    tw::tma_commit();
    tw::tma_wait_read<0>();
  }"""


def stored(emulator, entry, operation, mode=EAGER):
    """A box of numbers, and an array of 13 rows of 20 columns that it was stored to."""
    source = small_integers(3, (16, 16), np.float32)
    made = kernel(
        entry,
        STORE.replace("{OPERATION}", operation),
        {"A": source},
        operand("C", "float32", (13, 20)),
        shared=1024,
        maps={"map": TensorMapSpec("C", "float32", (20, 13), (80,), (16, 16))},
    )
    return source, output_of(emulator.run(made, {"A": source}, mode))


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_a_store_writes_its_box_and_nothing_outside(emulator, mode):
    source, result = stored(emulator, "store", "tw::tma_store_2d(&map, s, 8, 4);", mode)
    np.testing.assert_array_equal(result[4:, 8:], source[:9, :12])
    assert np.isnan(result[:4]).all()
    assert np.isnan(result[:, :8]).all()


def test_a_store_that_begins_before_its_array_is_clipped_there(emulator):
    source, result = stored(emulator, "early", "tw::tma_store_2d(&map, s, -4, -3);")
    np.testing.assert_array_equal(result[:, :12], source[3:, 4:])
    assert np.isnan(result[:, 12:]).all()


ADDITION = """
  const u32 s = tw::shared_base();
  u32 *counter = (u32 *)(workspace + 2048);
  for (int i = threadIdx.x; i < 256; i += 32) {
    const float x = tw::load_global(A + i) + blockIdx.x;
    tw::store_shared(s + i * sizeof(T), tw::from_float<T>(x));
  }
  tw::fence_async();
  tw::sync_warp();
  u32 ticket = 0;
  if (threadIdx.x == 0) {
    tw::tma_add_2d(&map, s, 0, 0);
    tw::tma_commit();
    tw::tma_wait<0>();
    ticket = tw::take_ticket(counter);
  }
  if (tw::warp_uniform(ticket) != 3) return;
  for (int i = threadIdx.x; i < 256; i += 32) {
    C[i] = tw::to_float(tw::load_global((const T *)workspace + i));
    tw::store_global((T *)workspace + i, T{});
  }
  if (threadIdx.x == 0) tw::store_global(counter, 0u);"""


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int32"])
def test_an_addition_adds(emulator, kind):
    """Four blocks add their boxes to a workspace that the last of them reads."""
    spec = TensorMapSpec(WORKSPACE, kind, (16, 16), (16 * (4 if "32" in kind else 2),), (16, 16))
    c_type = {"float32": "float", "float16": "f16", "bfloat16": "bf16", "int32": "i32"}[kind]
    body = f"typedef {c_type} T;" + ADDITION
    source = small_integers(4, (16, 16), np.float32)
    made = kernel(
        f"add_{kind}",
        body,
        {"A": source},
        operand("C", "float32", (16, 16)),
        blocks=4,
        shared=1024,
        workspace=2112,
        workspace_zeroed=True,
        maps={"map": spec},
    )
    for result in outcomes(emulator, made, {"A": source}).values():
        np.testing.assert_array_equal(output_of(result), 4 * source + 6)


# ---------------------------------------------------------------- mbarriers

RING = """
  const u32 s = tw::shared_base(), full = s + 2 * 128, empty = full + 16;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      tw::mbarrier_init(full + i * 8, 1);
      tw::mbarrier_init(empty + i * 8, 32);
    }
    tw::fence_barrier_init();
  }
  tw::sync_block();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 7; i++) {
      tw::mbarrier_wait(empty + i % 2 * 8, i / 2 % 2 ^ 1);
      tw::mbarrier_arrive_expect(full + i % 2 * 8, 128);
      tw::tma_load_2d(s + i % 2 * 128, &map, full + i % 2 * 8, 0, i);
    }
  } else if (threadIdx.x >= 32) {
    float sum = 0;
    for (int i = 0; i < 7; i++) {
      tw::mbarrier_wait(full + i % 2 * 8, i / 2 % 2);
      sum = 2 * sum + tw::load_shared<float>(s + i % 2 * 128 + (threadIdx.x - 32) * 4);
      tw::mbarrier_arrive(empty + i % 2 * 8);
    }
    C[threadIdx.x - 32] = sum;
  }"""
RING_INPUT = small_integers(7, (7, 32), np.float32)
RING_MAP = TensorMapSpec("A", "float32", (32, 7), (128,), (32, 1))


def ring(entry: str, body: str):
    out = operand("C", "float32", (32,))
    return kernel(
        entry, body, {"A": RING_INPUT}, out, threads=64, shared=288, maps={"map": RING_MAP}
    )


def test_a_ring_of_phases_hands_tiles_over_in_order(emulator):
    weights = 2.0 ** np.arange(6, -1, -1)
    for result in outcomes(emulator, ring("ring", RING), {"A": RING_INPUT}).values():
        np.testing.assert_array_equal(output_of(result), weights @ RING_INPUT)


MISUSES = {
    "over_arrival": (
        "tw::mbarrier_arrive_expect(full + i % 2 * 8, 128);",
        "tw::mbarrier_arrive_expect(full + i % 2 * 8, 128); tw::mbarrier_arrive(full + i % 2 * 8);",
        ErrorKind.WRONG,
        "one arrival too many at the mbarrier at byte 256",
    ),
    "arrivals_too_often": (
        "tw::mbarrier_arrive(empty + i % 2 * 8);",
        "tw::mbarrier_arrive(empty + i % 2 * 8); tw::mbarrier_arrive(empty + i % 2 * 8);",
        ErrorKind.DEADLOCK,
        "wait for mbarrier",
    ),
    "no_fence_after_init": (
        "tw::fence_barrier_init();",
        "",
        ErrorKind.WRONG,
        "before fence_barrier_init",
    ),
    "not_initialised": (
        "i < 2; i++) {",
        "i < 1; i++) {",
        ErrorKind.WRONG,
        "that is not initialised",
    ),
    "initialised_twice": (
        "tw::fence_barrier_init();",
        "tw::mbarrier_init(full, 1); tw::fence_barrier_init();",
        ErrorKind.WRONG,
        "a second time",
    ),
    "overwritten": (
        "float sum = 0;",
        "float sum = 0; tw::store_shared(full, 0.f);",
        ErrorKind.WRONG,
        "overwrites an mbarrier",
    ),
    "too_many_bytes_expected": (
        "full + i % 2 * 8, 128);",
        "full + i % 2 * 8, 144);",
        ErrorKind.DEADLOCK,
        "16 bytes to come",
    ),
    "box_out_of_shared_memory": (
        "tma_load_2d(s + i % 2 * 128",
        "tma_load_2d(s + 256 + i % 2 * 128",
        ErrorKind.OUT_OF_BOUNDS,
        "a TMA load of 128 bytes at byte 256",
    ),
    "misaligned_box": (
        "tma_load_2d(s + i % 2 * 128",
        "tma_load_2d(s + 16 + i % 2 * 128",
        ErrorKind.CRASH,
        "not aligned to 128 bytes",
    ),
    "another_rank": (
        "tma_load_2d(s + i % 2 * 128, &map, full + i % 2 * 8, 0, i)",
        "tma_load_3d(s + i % 2 * 128, &map, full + i % 2 * 8, 0, i, 0)",
        ErrorKind.CRASH,
        "a TMA load of 3 dimensions with a tensor map of 2",
    ),
    "load_left_in_flight": (
        "for (int i = 0; i < 7; i++) {\n      tw::mbarrier_wait(full",
        "for (int i = 0; i < 6; i++) {\n      tw::mbarrier_wait(full",
        ErrorKind.WRONG,
        "ends while its TMA load, or a store to it, is in flight",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misused_barriers_are_reported(emulator, name):
    old, new, kind, words = MISUSES[name]
    assert old in RING
    made = ring(name, RING.replace(old, new, 1))
    found = [r for r in outcomes(emulator, made, {"A": RING_INPUT}).values() if r.error_kind]
    assert any(r.error_kind is kind and words in r.error_text for r in found), found


# ---------------------------------------------------------------- clusters

MULTICAST = """
  const u32 s = tw::shared_base(), b = s + 512, rank = tw::cluster_rank();
  if (threadIdx.x == 0) {
    tw::mbarrier_init(b, 1);
    tw::fence_barrier_init();
    tw::mbarrier_arrive_expect(b, 512);
  }
  tw::sync_cluster();
  if (threadIdx.x == 0)  // each block brings one row of four to all
    tw::tma_multicast_2d(s + rank * 128, &map, b, 15, 0, blockIdx.x);
  tw::mbarrier_wait(b, 0);
  float sum = 0;
  for (int i = 0; i < 4; i++) sum = 3 * sum + tw::load_shared<float>(s + i * 128 + threadIdx.x * 4);
  C[blockIdx.x * 32 + threadIdx.x] = sum;"""
CLUSTER_INPUT = small_integers(8, (8, 32), np.float32)
CLUSTER_MAP = TensorMapSpec("A", "float32", (32, 8), (128,), (32, 1))


def cluster_kernel(entry, body, shared=520):
    out = operand("C", "float32", (8, 32))
    options = {"blocks": 8, "cluster": 4, "shared": shared, "maps": {"map": CLUSTER_MAP}}
    return kernel(entry, body, {"A": CLUSTER_INPUT}, out, **options)


def test_multicast_reaches_every_block_of_the_cluster(emulator):
    weights = 3.0 ** np.arange(3, -1, -1)
    expected = np.repeat(np.stack([weights @ CLUSTER_INPUT[:4], weights @ CLUSTER_INPUT[4:]]), 4, 0)
    made = cluster_kernel("multicast", MULTICAST)
    for result in outcomes(emulator, made, {"A": CLUSTER_INPUT}).values():
        np.testing.assert_array_equal(output_of(result), expected)


def test_multicast_before_the_cluster_is_ready_shows(emulator):
    made = cluster_kernel("unready", MULTICAST.replace("tw::sync_cluster();", "tw::sync_block();"))
    found = outcomes(emulator, made, {"A": CLUSTER_INPUT}).values()
    assert any("not initialised" in r.error_text for r in found)


EXCHANGE = """
  const u32 s = tw::shared_base(), b = s + 128, rank = tw::cluster_rank(), next = (rank + 1) % 4;
  if (threadIdx.x == 0) { tw::mbarrier_init(b, 32); tw::fence_barrier_init(); }
  tw::store_shared(s + threadIdx.x * 4, tw::load_global(A + blockIdx.x * 32 + threadIdx.x));
  tw::sync_cluster();
  const u32 there = tw::map_shared(s + threadIdx.x * 4, next);
  const float x = tw::bits_float(tw::load_remote(there));
  tw::sync_cluster();
  tw::store_remote(there, tw::float_bits(2 * x));
  tw::mbarrier_arrive_remote(tw::map_shared(b, next));
  tw::mbarrier_wait(b, 0);
  C[blockIdx.x * 32 + threadIdx.x] = x + tw::load_shared<float>(s + threadIdx.x * 4);
  tw::sync_cluster();"""


def test_distributed_shared_memory(emulator):
    """Each thread doubles its right neighbour's element in place; all see both."""
    made = cluster_kernel("exchange", EXCHANGE, shared=136)
    neighbour = CLUSTER_INPUT.reshape(2, 4, 32)[:, [1, 2, 3, 0]].reshape(8, 32)
    for result in outcomes(emulator, made, {"A": CLUSTER_INPUT}).values():
        np.testing.assert_array_equal(output_of(result), neighbour + 2 * CLUSTER_INPUT)


def test_leaving_a_cluster_too_early_shows(emulator):
    body = EXCHANGE[: EXCHANGE.rindex("tw::sync_cluster();")].replace(
        "tw::mbarrier_wait(b, 0);", "if (rank == 3) return;\n  tw::mbarrier_wait(b, 0);"
    )
    made = cluster_kernel("left", body, shared=136)
    orders = [Interleaving("random", seed) for seed in range(8)]
    found = [emulator.run(made, {"A": CLUSTER_INPUT}, order) for order in orders]
    assert any("block that has ended" in r.error_text for r in found)


def test_a_mapped_address_is_for_remote_functions_only(emulator):
    body = "tw::store_shared(tw::map_shared(tw::shared_base(), tw::cluster_rank() ^ 1), 1.f);"
    result = emulator.run(cluster_kernel("mapped", body), {"A": CLUSTER_INPUT})
    assert result.error_kind is ErrorKind.CRASH
    assert "another block's shared memory" in result.error_text

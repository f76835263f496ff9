"""TMA boxes against NumPy: loads, windows of images, boxes of several dimensions."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import EAGER, kernel, operand, output_of, small_integers
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.spaces.cuda.tensor_map import TensorMapSpec


def box_bytes(spec: TensorMapSpec) -> int:
    """Bytes that one load adds to the barrier's transaction count, clipped or not."""
    return prod(spec.box) * spec.element_bytes


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
    body = LOAD.format(bytes=box_bytes(spec), rank=2, at="at[0], at[1]")
    inputs = {"A": source, "at_": np.array(at, np.int32)}
    made = kernel(
        f"load{swizzle}",
        "const int at[] = {at_[0], at_[1]};" + body,
        inputs,
        operand("C", "int8", (box_bytes(spec),)),
        shared=box_bytes(spec) + 8,
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
        LOAD.format(bytes=box_bytes(spec), rank=3, at="8, 4, 2"),
        {"A": source},
        operand("C", "int8", (box_bytes(spec),)),
        shared=box_bytes(spec) + 8,
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

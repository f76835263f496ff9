"""Rings of mbarrier phases hand tiles over in order, and misused barriers are reported."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import kernel, operand, outcomes, output_of, small_integers
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.tensor_map import TensorMapSpec

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

"""What barriers, shuffles and deadlocks make of the threads of a block."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import (
    kernel,
    outcomes,
    output_of,
)
from tests.measure.cuda.emulator.small_kernels import NUMBERS, OUT, fault, run
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.measure.records.measurement import ErrorKind

MISSING = """
  const u32 s = tw::shared_base();
  tw::store_shared(s + threadIdx.x * 4, tw::load_global(A + threadIdx.x));
  SYNC
  float x = tw::load_shared<float>(s + (63 - threadIdx.x) * 4);
  tw::sync_block();
  tw::store_shared(s + threadIdx.x * 4, x + 1);
  SYNC
  tw::store_global(C + threadIdx.x, tw::load_shared<float>(s + (63 - threadIdx.x) * 4));"""


def test_a_barrier_joins_the_block(emulator):
    body = MISSING.replace("SYNC", "tw::sync_block();")
    made = kernel("joined", body, {"A": NUMBERS}, OUT, threads=64, shared=256)
    for result in outcomes(emulator, made, {"A": NUMBERS}).values():
        np.testing.assert_array_equal(output_of(result), NUMBERS + 1)


def test_a_missing_barrier_shows(emulator):
    body = MISSING.replace("SYNC", "", 1).replace("SYNC", "tw::sync_block();")
    kind, text = fault(emulator, "missing_first", body, threads=64, shared=256)
    assert kind is ErrorKind.WRONG
    assert "uninitialised" in text
    body = "tw::sync_block();".join(MISSING.split("SYNC", 1)).replace("SYNC", "")
    made = kernel("missing_last", body, {"A": NUMBERS}, OUT, threads=64, shared=256)
    results = outcomes(emulator, made, {"A": NUMBERS}).values()
    assert not all(np.array_equal(output_of(r), NUMBERS + 1) for r in results)


def test_a_deadlock_says_who_waits_for_what(emulator):
    body = """
  const u32 b = tw::shared_base();
  if (threadIdx.x == 0) { tw::mbarrier_init(b, 3); tw::fence_barrier_init(); }
  tw::sync_block();
  if (threadIdx.x == 40) tw::mbarrier_arrive_expect(b, 64);
  if (threadIdx.x < 32) tw::sync_named(2, 96);
  else if (threadIdx.x < 64) tw::mbarrier_wait(b, 0);"""
    kind, text = fault(emulator, "stuck", body, threads=96, shared=8)
    assert kind is ErrorKind.DEADLOCK
    assert "threads 0-31 in block (0, 0, 0) wait for barrier 2: 32 of 96 threads are there" in text
    assert "threads 32-63 in block (0, 0, 0) wait for mbarrier at byte 0, parity 0:" in text
    assert "in phase parity 0, 2 of 3 arrivals and 64 bytes to come" in text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_named_barriers_order_producers_and_consumers(emulator, mode):
    """Arrivals do not wait; the next round does not start before the last has been read."""
    body = """
  const u32 s = tw::shared_base();
  if (threadIdx.x < 32) {
    for (int i = 0; i < 8; i++) {
      if (i) tw::sync_named(2, 64);
      tw::store_shared(s + threadIdx.x * 4, tw::load_global(A + i * 8 + threadIdx.x % 8));
      tw::arrive_named(1, 64);
    }
  } else {
    float sum = 0;
    for (int i = 0; i < 8; i++) {
      tw::sync_named(1, 64);
      sum += tw::load_shared<float>(s + (63 - threadIdx.x) * 4);
      if (i < 7) tw::arrive_named(2, 64);
    }
    tw::store_global(C + threadIdx.x, sum);
  }"""
    result = output_of(run(emulator, "handover", body, mode=mode, threads=64, shared=128))
    expected = NUMBERS.reshape(8, 8).sum(axis=0)
    np.testing.assert_array_equal(result[32:], np.tile(expected[::-1], 4))


def test_shuffles_exchange_within_a_warp(emulator):
    body = """
  const float x = tw::load_global(A + threadIdx.x);
  tw::store_global(C + threadIdx.x, tw::shuffle_xor(x, 5) + 100 * tw::shuffle(x, 7));"""
    result = output_of(run(emulator, "shuffled", body, threads=64))
    lanes = np.arange(64)
    np.testing.assert_array_equal(result, NUMBERS[lanes ^ 5] + 100 * NUMBERS[lanes // 32 * 32 + 7])

"""What blocks of a launch see of each other's stores, in which order."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import (
    kernel,
    operand,
    outcomes,
    output_of,
    small_integers,
)
from tests.measure.cuda.emulator.small_kernels import NUMBERS, OUT, fault, run
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.measure.records.measurement import ErrorKind

SPLIT = """
  u32 *counter = (u32 *)workspace;
  float *sums = (float *)(workspace + 64);
  tw::atomic_add(sums + threadIdx.x, tw::load_global(A + blockIdx.x * 32 + threadIdx.x));
  tw::fence_global();
  tw::sync_block();
  if (threadIdx.x == 0) tw::store_shared(tw::shared_base(), tw::take_ticket(counter));
  tw::sync_block();
  if (tw::load_shared<u32>(tw::shared_base()) != gridDim.x - 1) return;
  tw::store_global(C + threadIdx.x, tw::load_global((const float *)sums + threadIdx.x));
  tw::store_global(sums + threadIdx.x, 0.f);
  if (threadIdx.x == 0) tw::store_global(counter, 0u);"""


def test_atomics_and_tickets_across_blocks(emulator):
    """Split-K as templates do it: the last block to finish adds up and leaves zeros behind."""
    source = small_integers(5, (6 * 32,), np.float32)
    options = {"blocks": 6, "shared": 4, "workspace": 256, "workspace_zeroed": True}
    out = operand("C", "float32", (32,))
    made = kernel("split", SPLIT, {"A": source}, out, **options)
    for result in outcomes(emulator, made, {"A": source}).values():
        np.testing.assert_array_equal(output_of(result), source.reshape(6, 32).sum(axis=0))
    careless = SPLIT.replace("tw::store_global(counter, 0u);", "{}")
    kind, text = fault(emulator, "careless", careless, inputs={"A": source}, output=out, **options)
    assert kind is ErrorKind.WRONG
    assert "workspace" in text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_what_one_block_added_without_a_fence_is_not_hidden_by_what_others_add(emulator, mode):
    body = SPLIT.replace("tw::fence_global();", "if (blockIdx.x > 1) tw::fence_global();")
    source = small_integers(5, (6 * 32,), np.float32)
    kind, text = fault(
        emulator, "hidden", body, mode=mode, inputs={"A": source},
        output=operand("C", "float32", (32,)), blocks=6, shared=4, workspace=256,
        workspace_zeroed=True)  # fmt: skip
    assert kind is ErrorKind.WRONG
    assert "without a fence_global() since" in text


ORDERED = """
  u32 *turn = (u32 *)workspace;
  if (threadIdx.x == 0) tw::wait_global(turn, blockIdx.x);
  tw::sync_block();
  float sum = blockIdx.x ? tw::load_global((const float *)C + threadIdx.x) : 0;
  tw::store_global(C + threadIdx.x, 2 * sum + tw::load_global(A + blockIdx.x * 32 + threadIdx.x));
  tw::fence_global();
  tw::sync_block();
  if (threadIdx.x == 0) tw::signal_global(turn, blockIdx.x + 1 < gridDim.x ? blockIdx.x + 1 : 0);"""


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_blocks_take_turns_by_flags(emulator, mode):
    source = small_integers(6, (5, 32), np.float32)
    result = output_of(
        run(emulator, "turns", ORDERED, mode=mode, inputs={"A": source},
            output=operand("C", "float32", (32,)), blocks=5, workspace=64, workspace_zeroed=True)
    )  # fmt: skip
    weights = 2.0 ** np.arange(4, -1, -1)
    np.testing.assert_array_equal(result, weights @ source)


def test_waiting_for_a_block_that_cannot_start_is_a_deadlock(emulator):
    body = "if (blockIdx.x == 0) tw::wait_global((u32 *)workspace, 7);"
    kind, text = fault(emulator, "forever", body, blocks=3, workspace=64, workspace_zeroed=True)
    assert kind is ErrorKind.DEADLOCK
    assert re.search(
        r"block \(0, 0, 0\) wait for a flag in global memory to become 7; it is 0", text
    )


EXCHANGED = """
  u32 *counter = (u32 *)workspace;
  float *parts = (float *)(workspace + 64), sum = 0;
  tw::store_global(parts + blockIdx.x * 64 + threadIdx.x, tw::load_global(A + threadIdx.x));
  RELEASE
  if (threadIdx.x == 0) tw::store_shared(tw::shared_base(), tw::take_ticket(counter));
  tw::sync_block();
  if (tw::load_shared<u32>(tw::shared_base()) != 3) return;
  for (int i = 0; i < 4; i++) sum += tw::load_global(parts + i * 64 + 63 - threadIdx.x);
  tw::store_global(C + threadIdx.x, sum);
  if (threadIdx.x == 0) tw::store_global(counter, 0u);"""
FENCE, SYNC = "tw::fence_global();", "tw::sync_block();"


def exchange(emulator, release, mode):
    body = EXCHANGED.replace("RELEASE", release)
    options = {"threads": 64, "blocks": 4, "shared": 4, "workspace": 64 + 4 * 4 * 64}
    made = kernel("exchange", body, {"A": NUMBERS}, OUT, **options)
    made = replace(made, call=replace(made.call, workspace_zeroed=64))
    return emulator.run(made, {"A": NUMBERS}, mode)


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
@pytest.mark.parametrize("release", [FENCE + SYNC, SYNC + "if (threadIdx.x == 0) " + FENCE])
def test_fenced_stores_reach_other_blocks(emulator, release, mode):
    """Each thread fences its own, or one those of all that it has met."""
    found = output_of(exchange(emulator, release, mode))
    np.testing.assert_array_equal(found, 4 * NUMBERS[::-1])


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
@pytest.mark.parametrize("release", [SYNC, "if (threadIdx.x == 63) " + FENCE + SYNC])
def test_stores_that_their_own_thread_did_not_fence_do_not(emulator, release, mode):
    result = exchange(emulator, release, mode)
    assert result.error_kind is ErrorKind.WRONG
    assert re.match(
        r"load_global reads byte \d+ of tw\.workspace, which thread \d+ of block \(\d, 0, 0\) "
        r"stored without a fence_global\(\) since, by thread \d+ of block \(\d, 0, 0\)",
        result.error_text,
    )


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_stores_that_no_barrier_orders_before_the_ticket_do_not(emulator, mode):
    result = exchange(emulator, FENCE, mode)
    assert result.error_kind is ErrorKind.WRONG
    assert "stored without a ticket or signal since" in result.error_text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_a_flag_is_not_for_the_stores_of_other_threads(emulator, mode):
    body = ORDERED.replace("tw::fence_global();", "")
    options = {"inputs": {"A": small_integers(6, (5, 32), np.float32)}, "blocks": 5}
    out = operand("C", "float32", (32,))
    kind, text = fault(
        emulator, "unfenced", body, mode=mode, output=out, workspace=64, workspace_zeroed=True,
        **options,
    )  # fmt: skip
    assert kind is ErrorKind.WRONG
    assert "without a fence_global() since" in text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_what_was_fenced_is_read_only_after_a_fence_or_a_flag(emulator, mode):
    """The second block's reads may come before the first one's stores."""
    body = """
  if (blockIdx.x == 0) {
    tw::store_global(C + threadIdx.x, 1.f);
    tw::fence_global();
  } else {
    for (int i = 0; i < 20; i++) tw::sync_block();
    tw::store_global(C + 32 + threadIdx.x, tw::load_global((const float *)C + threadIdx.x));
  }"""
    result = run(emulator, "unordered", body, mode=mode, blocks=2)
    if result.error_kind is None:
        assert np.isnan(result.output[32:]).any()
    else:
        assert "stored without a ticket or signal since" in result.error_text


def test_neighbours_in_one_word_are_told_apart(emulator):
    """Blocks read their own bytes beside those of others."""
    body = """
  tw::store_global(C + 2 * threadIdx.x + blockIdx.x, (i8)blockIdx.x);
  tw::sync_block();
  for (int i = 0; i < 32; i++)
    if (tw::load_global((const i8 *)C + 2 * i + blockIdx.x) != (i8)blockIdx.x)
      tw::store_global(C + 2 * i, (i8)9);"""
    made = kernel("bytes", body, {"A": NUMBERS}, operand("C", "int8", (64,)), blocks=2)
    for result in outcomes(emulator, made, {"A": NUMBERS}).values():
        np.testing.assert_array_equal(output_of(result), np.tile([0, 1], 32))


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_blocks_of_a_cluster_order_their_stores_by_its_barrier(emulator, mode):
    body = """
  tw::store_global(C + 32 * blockIdx.x + threadIdx.x, (float)blockIdx.x);
  tw::sync_cluster();
  const float other = tw::load_global((const float *)C + 32 * (blockIdx.x ^ 1) + threadIdx.x);
  tw::sync_cluster();
  tw::store_global(C + 32 * blockIdx.x + threadIdx.x, other);"""
    found = output_of(run(emulator, "in_cluster", body, mode=mode, blocks=2, cluster=2))
    np.testing.assert_array_equal(found, np.repeat([1, 0], 32))


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_an_update_that_is_not_atomic_is_a_fault(emulator, mode):
    body = """
  u32 *sum = (u32 *)workspace;
  for (int i = 0; i < 8; i++) tw::store_global(sum, 1 + tw::load_global((const u32 *)sum));"""
    kind, text = fault(emulator, "lost", body, mode=mode, blocks=4, workspace=64)
    assert kind is ErrorKind.WRONG
    assert "load_global reads byte 0 of tw.workspace, which thread" in text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_a_barrier_left_half_used_is_a_fault(emulator, mode):
    body = "if (threadIdx.x < 32) tw::arrive_named(3, 64);"
    kind, text = fault(emulator, "half", body, mode=mode, threads=64)
    assert kind is ErrorKind.WRONG
    assert "a block ends while named barrier 3 is half used: 32 of 64 threads have arrived" in text

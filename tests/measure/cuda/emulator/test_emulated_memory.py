"""What the emulator checks of memory, copies, barriers and threads."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from measure.cuda.emulator import INTERLEAVINGS, Emulator
from measure.records.measurement import ErrorKind
from spaces.kernel import arguments
from spaces.workloads.contraction import Operand
from tests.measure.cuda.cuda_kernels import (
    EAGER,
    kernel,
    operand,
    outcomes,
    output_of,
    small_integers,
)

LAZY = INTERLEAVINGS[1]
NUMBERS = np.arange(64, dtype=np.float32)
OUT = operand("C", "float32", (64,))


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as made:
        yield made


def run(emulator, entry, body, *, mode=EAGER, output=OUT, inputs=None, **options):
    inputs = {"A": NUMBERS} if inputs is None else inputs
    made = kernel(entry, body, inputs, output, **options)
    return emulator.run(made, inputs, mode)


def fault(emulator, entry, body, **options):
    result = run(emulator, entry, body, **options)
    assert result.error_kind is not None
    return result.error_kind, result.error_text


# ---------------------------------------------------------------- faults

FAULTS = {
    "reads_beyond_an_input": (
        "tw::store_global(C, tw::load_global(A + 61 + threadIdx.x));",
        ErrorKind.OUT_OF_BOUNDS,
        "load_global of 4 bytes at byte 256 of A, which has 256, by thread 3 of block",
    ),
    "reads_before_an_input": (
        "tw::store_global(C, tw::load_global(A - 1));",
        ErrorKind.OUT_OF_BOUNDS,
        "load_global of 4 bytes at byte -4 of A",
    ),
    "vector_over_the_end": (
        "float v[4]; tw::load_global<4>(v, A + 62); tw::store_global(C, v[0]);",
        ErrorKind.OUT_OF_BOUNDS,
        "load_global of 16 bytes at byte 248 of A",
    ),
    "misaligned_global": (
        "float v[4]; tw::load_global<4>(v, A + 2); tw::store_global(C, v[0]);",
        ErrorKind.CRASH,
        "load_global of 16 bytes is misaligned at byte 8 of A",
    ),
    "writes_beyond_the_output": (
        "tw::store_global(C + 64, 1.f);",
        ErrorKind.OUT_OF_BOUNDS,
        "store_global of 4 bytes at byte 256 of C, which has 256",
    ),
    "writes_an_input": (
        "tw::store_global((float *)A, 1.f);",
        ErrorKind.WRONG,
        "store_global writes to input A",
    ),
    "plain_pointer_far_out": (
        "C[1ll << 34] = 1;",
        ErrorKind.CRASH,
        "a plain access to address",
    ),
    "plain_pointer_over_the_end": (
        "C[64 + threadIdx.x] = 1;",
        ErrorKind.OUT_OF_BOUNDS,
        "a plain access at byte 256 of C, which has 256 bytes",
    ),
    "shared_too_small": (
        "tw::store_shared(tw::shared_base() + threadIdx.x * 4, 1.f);",
        ErrorKind.OUT_OF_BOUNDS,
        "store_shared of 4 bytes at byte 64 of shared memory, which has 64, by thread 16",
    ),
    "shared_below_its_base": (
        "tw::store_shared(tw::shared_base() - 4, 1.f);",
        ErrorKind.OUT_OF_BOUNDS,
        "store_shared of 4 bytes at byte -4",
    ),
    "misaligned_shared": (
        "float v[2] = {}; tw::store_shared<2>(tw::shared_base() + 4, v);",
        ErrorKind.CRASH,
        "store_shared at byte 4 of shared memory is not aligned to 8 bytes",
    ),
    "uninitialised_shared": (
        "tw::store_shared(tw::shared_base(), 1.f); "
        "float v[2]; tw::load_shared<2>(v, tw::shared_base()); tw::store_global(C, v[1]);",
        ErrorKind.WRONG,
        "load_shared reads uninitialised shared memory at byte 4, by thread 0",
    ),
    "warp_meets_in_different_places": (
        "threadIdx.x < 16 ? tw::sync_warp() : (void)tw::shuffle_xor(1.f, 1);",
        ErrorKind.WRONG,
        "meet in sync_warp and in a shuffle",
    ),
    "endless": (
        "for (volatile int i = 0; i < 1; ) {}",
        ErrorKind.TIMEOUT,
        "longer than",
    ),
    "outgrows_its_stack": (
        "volatile char big[131000]; for (int i = 131000; i-- > 0;) big[i] = 1; C[0] = big[7];",
        ErrorKind.CRASH,
        "a plain access to address",
    ),
    "divides_by_zero": (
        "volatile int zero = 0; C[0] = 7 / zero;",
        ErrorKind.CRASH,
        "",
    ),
    "calls_what_does_not_exist": (
        "tw::mma_m16n8k5_f32_f16_f16(c, a, b);",
        ErrorKind.COMPILE,
        "there is no intrinsic mma_m16n8k5_f32_f16_f16",
    ),
    "does_not_compile": ("undeclared();", ErrorKind.COMPILE, "undeclared"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_reported_with_kind_place_and_reason(emulator, name):
    body, kind, words = FAULTS[name]
    made = kernel(name, body, {"A": NUMBERS}, OUT, shared=64)
    patience = 3 if kind is ErrorKind.TIMEOUT else 120
    result = emulator.run(made, {"A": NUMBERS}, EAGER, timeout=patience)
    assert result.error_kind is kind
    assert words in result.error_text
    assert result.output is None


def test_a_faulty_kernel_does_not_spoil_its_batch(emulator):
    good = kernel("good", "C[threadIdx.x] = A[threadIdx.x] + 1;", {"A": NUMBERS}, OUT, threads=64)
    bad = kernel("bad", "undeclared();", {"A": NUMBERS}, OUT)
    emulator.build([bad, good])
    result = emulator.run(good, {"A": NUMBERS})
    np.testing.assert_array_equal(output_of(result), NUMBERS + 1)
    assert emulator.run(bad, {"A": NUMBERS}).error_kind is ErrorKind.COMPILE


def test_what_is_not_written_stays_poisoned(emulator):
    result = output_of(run(emulator, "half", "tw::store_global(C + threadIdx.x, 1.f);"))
    assert (result[:32] == 1).all()
    assert np.isnan(result[32:]).all()


def test_column_major_operands_keep_their_order(emulator):
    matrix = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    a = Operand("A", "float32", (3, 4), (1, 0), axes=("m", "k"))
    c = Operand("C", "float32", (3, 4), (1, 0), axes=("m", "k"))
    body = "if (threadIdx.x < 12) C[threadIdx.x] = A[threadIdx.x] + 10 * threadIdx.x;"
    made = kernel("order", body, {"A": matrix}, OUT)
    made = replace(made, call=replace(made.call, arguments=arguments([a], [c])))
    result = output_of(emulator.run(made, {"A": matrix}))
    np.testing.assert_array_equal(result, matrix + 10 * np.arange(12).reshape(4, 3).T)


# ---------------------------------------------------------------- threads

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


# ---------------------------------------------------------------- cp.async

COPY = """
  const u32 s = tw::shared_base() + threadIdx.x * 16;
  tw::cp_async<16>(s, A + threadIdx.x * 4);
  tw::cp_async_commit();
  tw::cp_async<16>(s + 512, A + threadIdx.x * 4, 4);
  tw::cp_async_commit();
  tw::cp_async_wait<PENDING>();
  float v[4], w[4];
  tw::load_shared<4>(v, s);
  SECOND
  for (int i = 0; i < 4; i++) v[i] += 1000 * w[i];
  tw::store_global<4>(C + threadIdx.x * 4, v);"""
WIDE = np.arange(1, 129, dtype=np.float32)
WIDE_OUT = operand("C", "float32", (128,))


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_cp_async_lands_by_its_wait_and_fills_with_zeros(emulator, mode):
    body = COPY.replace("PENDING", "0").replace("SECOND", "tw::load_shared<4>(w, s + 512);")
    result = output_of(
        run(emulator, "copy", body, mode=mode, inputs={"A": WIDE}, output=WIDE_OUT, shared=1024)
    )
    kept = np.where(np.arange(128) % 4 == 0, WIDE, 0)
    np.testing.assert_array_equal(result, WIDE + 1000 * kept)


def test_cp_async_is_not_there_before_its_wait(emulator):
    one = COPY.replace("SECOND", "for (float &x : w) x = 0;")
    options = {"inputs": {"A": WIDE}, "output": WIDE_OUT, "shared": 1024, "mode": LAZY}
    result = output_of(run(emulator, "newest_pending", one.replace("PENDING", "1"), **options))
    np.testing.assert_array_equal(result, WIDE)
    kind, text = fault(emulator, "all_pending", one.replace("PENDING", "2"), **options)
    assert kind is ErrorKind.WRONG
    assert "uninitialised" in text


def test_cp_async_of_nothing_reads_nothing(emulator):
    body = """
  const u32 s = tw::shared_base() + threadIdx.x * 4;
  tw::cp_async<4>(s, A + 1000000 + threadIdx.x, 0);
  tw::cp_async_commit();
  tw::cp_async_wait<0>();
  tw::store_global(C + threadIdx.x, tw::load_shared<float>(s));"""
    assert (output_of(run(emulator, "nothing", body, shared=128))[:32] == 0).all()


# ---------------------------------------------------------------- blocks


def test_atomics_and_tickets_across_blocks(emulator):
    """Split-K as templates do it: the last block to finish adds up and leaves zeros behind."""
    body = """
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
    source = small_integers(5, (6 * 32,), np.float32)
    options = {"blocks": 6, "shared": 4, "workspace": 256, "workspace_zeroed": True}
    out = operand("C", "float32", (32,))
    made = kernel("split", body, {"A": source}, out, **options)
    for result in outcomes(emulator, made, {"A": source}).values():
        np.testing.assert_array_equal(output_of(result), source.reshape(6, 32).sum(axis=0))
    careless = body.replace("tw::store_global(counter, 0u);", "{}")
    kind, text = fault(emulator, "careless", careless, inputs={"A": source}, output=out, **options)
    assert kind is ErrorKind.WRONG
    assert "workspace" in text


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
        r"load_global reads byte \d+ of workspace, which thread \d+ of block \(\d, 0, 0\) stored "
        r"without a fence_global\(\) since, by thread \d+ of block \(\d, 0, 0\)",
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
    assert "load_global reads byte 0 of workspace, which thread" in text


@pytest.mark.parametrize("mode", INTERLEAVINGS, ids=str)
def test_a_barrier_left_half_used_is_a_fault(emulator, mode):
    body = "if (threadIdx.x < 32) tw::arrive_named(3, 64);"
    kind, text = fault(emulator, "half", body, mode=mode, threads=64)
    assert kind is ErrorKind.WRONG
    assert "a block ends while named barrier 3 is half used: 32 of 64 threads have arrived" in text


# ---------------------------------------------------------------- banks

STRIDES = [  # words between lanes, words a lane, wavefronts over their least
    (1, 1, 1),
    (0, 1, 1),
    (2, 1, 2),
    (32, 1, 32),
    (33, 1, 1),
    (4, 4, 1),
    (36, 4, 1),
    (32, 4, 8),
    (2, 2, 1),
    (32, 2, 16),
]


@pytest.mark.parametrize(("stride", "width", "times"), STRIDES)
def test_bank_conflicts_are_counted(emulator, stride, width, times):
    body = f"""
  float v[{width}] = {{}};
  const u32 s = tw::shared_base();
  if (threadIdx.x == 0)
    for (int i = 0; i < 31 * {stride} + {width}; i++) tw::store_shared(s + i * 4, 1.f);
  tw::sync_block();
  for (int i = 0; i < 3; i++) tw::load_shared<{width}>(v, s + threadIdx.x * {stride * 4});
  tw::store_global(C, v[0]);"""
    result = run(emulator, f"banks_{stride}_{width}", body, shared=4 * (31 * stride + width))
    output_of(result)
    assert result.conflicts == times - 1


@pytest.mark.parametrize(("swizzled", "times"), [(True, 1), (False, 8)])
def test_a_swizzle_removes_the_conflicts_of_ldmatrix(emulator, swizzled, times):
    turn = "row % 8" if swizzled else "0"
    body = f"""
  const u32 s = tw::shared_base();
  const int row = threadIdx.x % 16, piece = threadIdx.x / 16;
  f16 v[8] = {{}};
  if (threadIdx.x == 0) for (int i = 0; i < 128; i++) tw::store_shared<8>(s + i * 16, v);
  tw::sync_block();
  u32 r[4];
  for (int i = 0; i < 4; i++) tw::ldmatrix_x4(r, s + row * 128 + ((i * 2 + piece ^ {turn}) << 4));
  tw::store_global(C, (float)r[0]);"""
    result = run(emulator, f"ldmatrix_banks{times}", body, shared=2048)
    output_of(result)
    assert result.conflicts == times - 1

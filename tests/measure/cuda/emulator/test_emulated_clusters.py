"""What the emulator checks of vectors stored into another block's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import kernel, operand, outcomes, output_of
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Interleaving
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.kernel import Kernel

INPUT = np.arange(4 * 128, dtype=np.float32).reshape(4, 128)
OUT = operand("C", "float32", (4, 128))
PASS_ON = """
  const u32 s = tw::shared_base(), b = s + 512, rank = tw::cluster_rank(), next = (rank + 1) % 4;
  const u32 there = tw::map_shared(s, next) + threadIdx.x * 16, done = tw::map_shared(b, next);
  float v[4];
  tw::load_global<4>(v, A + blockIdx.x * 128 + threadIdx.x * 4);
  if (threadIdx.x == 0) {
    tw::mbarrier_init(b, 1);
    tw::fence_barrier_init();
    tw::mbarrier_arrive_expect(b, 512);
  }
  tw::sync_warp();
  tw::sync_cluster();
  tw::store_async_x4(there, v, done);
  tw::mbarrier_wait_cluster(b, 0);
  tw::load_shared<4>(v, s + (31 - threadIdx.x) * 16);
  tw::store_global<4>(C + blockIdx.x * 128 + threadIdx.x * 4, v);"""


def made(entry: str, body: str) -> Kernel:
    return kernel(entry, body, {"A": INPUT}, OUT, blocks=4, cluster=4, shared=520)


def changed(name: str, changes: tuple[tuple[str, str], ...]) -> Kernel:
    body = PASS_ON
    for old, new in changes:
        assert old in body
        body = body.replace(old, new)
    return made(name, body)


def test_vectors_arrive_in_the_next_block(emulator):
    expected = INPUT.reshape(4, 32, 4)[[3, 0, 1, 2], ::-1].reshape(4, 128)
    for result in outcomes(emulator, made("passed_on", PASS_ON), {"A": INPUT}).values():
        np.testing.assert_array_equal(output_of(result), expected)


FAULTS = {
    "over_the_end": (
        (("* 16, done", "* 16 + 16, done"),),
        ErrorKind.OUT_OF_BOUNDS,
        "store_async of 16 bytes at byte 512 of shared memory, which has 520, by thread 31",
    ),
    "misaligned": (
        (("store_async_x4(there", "store_async_x4(there + 8"),),
        ErrorKind.CRASH,
        "store_async at byte 488 of shared memory is not aligned to 16 bytes",
    ),
    "in_place_of_a_barrier": (
        (("init(b, 1);", "init(b, 1);\n    tw::mbarrier_init(s + 48, 1);"),),
        ErrorKind.WRONG,
        "store_async overwrites an mbarrier near byte 48",
    ),
    "short_of_what_is_read": (
        (("  tw::store_async", "  if (threadIdx.x) tw::store_async"), ("(b, 512)", "(b, 496)")),
        ErrorKind.WRONG,
        "load_shared reads uninitialised shared memory at byte 0, by thread 31",
    ),
    "short_of_what_is_expected": (
        (("(b, 512)", "(b, 528)"),),
        ErrorKind.DEADLOCK,
        "mbarrier at byte 512, parity 0: in phase parity 0, 0 of 1 arrivals and 16 bytes to come",
    ),
    "completes_a_barrier_elsewhere": (
        (("tw::map_shared(b, next)", "tw::map_shared(b, rank)"),),
        ErrorKind.CRASH,
        "store_async to one block and a barrier of another",
    ),
    "completes_no_barrier": (
        (("tw::map_shared(b, next)", "tw::map_shared(b - 8, next)"),),
        ErrorKind.WRONG,
        "store_async of an mbarrier at byte 504 that is not initialised",
    ),
    "completes_a_barrier_not_made_visible": (
        (("    tw::fence_barrier_init();\n", ""),),
        ErrorKind.WRONG,
        "store_async completes on the mbarrier at byte 512 before fence_barrier_init",
    ),
    "waits_as_for_its_own_block": (
        (("mbarrier_wait_cluster", "mbarrier_wait"),),
        ErrorKind.WRONG,
        "mbarrier_wait at byte 512 for what another block stores",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_stores_are_reported(emulator, name):
    changes, kind, words = FAULTS[name]
    result = emulator.run(changed(name, changes), {"A": INPUT})
    assert result.error_kind is kind
    assert words in result.error_text


WAIT = "  tw::mbarrier_wait_cluster(b, 0);\n"
# shown by some order of events, if not by all
RACES = {
    "early": (((WAIT, ""),), "uninitialised"),
    "partly": ((("(b, 512)", "(b, 256)"),), "uninitialised"),
    "gone": ((("  tw::store_async", "  if (rank == 1) return;\n  tw::store_async"),), "has ended"),
    "leaving": (((WAIT, "  if (rank == 1) return;\n" + WAIT),), "or a store to it, is in flight"),
}


@pytest.mark.parametrize("name", RACES)
def test_what_does_not_wait_shows(emulator, name):
    changes, words = RACES[name]
    racing = changed(name, changes)
    orders = (*INTERLEAVINGS, *(Interleaving("random", seed) for seed in range(3, 8)))
    texts = [emulator.run(racing, {"A": INPUT}, order).error_text for order in orders]
    assert any(words in text for text in texts), texts

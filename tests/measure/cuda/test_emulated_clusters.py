"""What the emulator checks of vectors stored into another block's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from measure.cuda.emulator import Emulator, Interleaving
from measure.measurement import ErrorKind
from spaces.kernel import Kernel
from tests.measure.cuda.cuda_kernels import kernel, operand, outcomes, output_of

INPUT = np.arange(4 * 128, dtype=np.float32).reshape(4, 128)
OUT = operand("C", "float32", (4, 128))
PASS_ON = """
  const u32 s = tw::shared_base(), rank = tw::cluster_rank();
  const u32 there = tw::map_shared(s, (rank + 1) % 4) + threadIdx.x * 16;
  float v[4];
  tw::load_global<4>(v, A + blockIdx.x * 128 + threadIdx.x * 4);
  tw::sync_cluster();
  tw::store_remote_x4(there, v);
  tw::sync_cluster();
  tw::load_shared<4>(v, s + (31 - threadIdx.x) * 16);
  tw::store_global<4>(C + blockIdx.x * 128 + threadIdx.x * 4, v);"""
LAST = "  tw::store_remote_x4(there, v);\n  tw::sync_cluster();\n"


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as made:
        yield made


def made(entry: str, body: str) -> Kernel:
    return kernel(entry, body, {"A": INPUT}, OUT, blocks=4, cluster=4, shared=520)


def test_vectors_arrive_in_the_next_block(emulator):
    expected = INPUT.reshape(4, 32, 4)[[3, 0, 1, 2], ::-1].reshape(4, 128)
    for result in outcomes(emulator, made("passed_on", PASS_ON), {"A": INPUT}).values():
        np.testing.assert_array_equal(output_of(result), expected)


FAULTS = {
    "over_the_end": (
        ("* 16;\n  float", "* 16 + 16;\n  float"),
        ErrorKind.OUT_OF_BOUNDS,
        "store_remote of 16 bytes at byte 512 of shared memory, which has 520, by thread 31",
    ),
    "misaligned": (
        ("store_remote_x4(there", "store_remote_x4(there + 8"),
        ErrorKind.CRASH,
        "store_remote at byte 504 of shared memory is not aligned to 16 bytes",
    ),
    "in_place_of_a_barrier": (
        ("  float v", "  if (threadIdx.x == 0) tw::mbarrier_init(s + 48, 1);\n  float v"),
        ErrorKind.WRONG,
        "store_remote overwrites an mbarrier near byte 48",
    ),
    "short_of_what_is_read": (
        ("tw::store_remote_x4", "if (threadIdx.x) tw::store_remote_x4"),
        ErrorKind.WRONG,
        "load_shared reads uninitialised shared memory at byte 0, by thread 31",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_stores_are_reported(emulator, name):
    change, kind, words = FAULTS[name]
    assert change[0] in PASS_ON
    result = emulator.run(made(name, PASS_ON.replace(*change)), {"A": INPUT})
    assert result.error_kind is kind
    assert words in result.error_text


def shown(emulator: Emulator, entry: str, body: str) -> list[str]:
    orders = [Interleaving("random", seed) for seed in range(8)]
    return [emulator.run(made(entry, body), {"A": INPUT}, order).error_text for order in orders]


def test_reading_before_the_store_shows(emulator):
    early = PASS_ON.replace(LAST, LAST.replace("tw::sync_cluster();", ""))
    assert any("uninitialised" in text for text in shown(emulator, "early", early))


def test_storing_into_a_block_that_has_ended_shows(emulator):
    gone = PASS_ON.replace(LAST, "  if (rank == 1) return;\n" + LAST)
    assert any("block that has ended" in text for text in shown(emulator, "gone", gone))

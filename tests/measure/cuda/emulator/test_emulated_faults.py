"""What the emulator refuses in a kernel, with its kind, its place and its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import (
    EAGER,
    kernel,
    output_of,
)
from tests.measure.cuda.emulator.small_kernels import NUMBERS, OUT, run
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.kernel import arguments
from tilewright.spaces.workloads.matmul import Operand

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


def test_a_launch_of_what_the_text_does_not_have_is_no_fault_of_a_kernel(emulator):
    made = kernel("present", "tw::store_global(C, 1.f);", {}, OUT)
    [launch] = made.call.launches
    absent = replace(made.call, launches=(replace(launch, entry="absent"),))
    emulator.build([made])
    with pytest.raises(RuntimeError, match=r"^the emulator refused a launch: .*tw_call_absent"):
        emulator.run(replace(made, call=absent), {}, EAGER)


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

"""What copies into shared memory bring and when, and what its banks cost."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import (
    operand,
    output_of,
)
from tests.measure.cuda.emulator.small_kernels import fault, run
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.measure.records.measurement import ErrorKind

LAZY = INTERLEAVINGS[1]


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

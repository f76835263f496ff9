"""TMA stores and additions write their box and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import (
    EAGER,
    kernel,
    operand,
    outcomes,
    output_of,
    small_integers,
)
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import WORKSPACE

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
    source, result = run(emulator, entry, STORE.replace("{OPERATION}", operation), mode)
    return source, output_of(result)


def run(emulator, entry, body, mode=EAGER):
    source = small_integers(3, (16, 16), np.float32)
    made = kernel(
        entry,
        body,
        {"A": source},
        operand("C", "float32", (13, 20)),
        shared=1024,
        maps={"map": TensorMapSpec("C", "float32", (20, 13), (80,), (16, 16))},
    )
    return source, emulator.run(made, {"A": source}, mode)


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


@pytest.mark.parametrize(("columns", "is_right"), [(12, True), (11, False)])
def test_what_a_store_leaves_out_needs_no_value(emulator, columns, is_right):
    body = STORE.replace("{OPERATION}", "tw::tma_store_2d(&map, s, 8, 4);")
    body = body.replace("tw::store_shared(s", f"if (i % 16 < {columns}) tw::store_shared(s")
    source, result = run(emulator, f"first_{columns}", body)
    if is_right:
        np.testing.assert_array_equal(output_of(result)[4:, 8:], source[:9, :12])
    else:
        assert "a TMA store reads uninitialised shared memory at byte 44" in result.error_text


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

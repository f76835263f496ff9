"""mma, ldmatrix and stmatrix against matrix products, by the fragment layouts of the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import EAGER, kernel, operand, output_of
from tests.measure.cuda.emulator.products.matrices import C_TYPE, NAMES, numbers, product
from tilewright.spaces.cuda.intrinsics.families import ELEMENT_BITS, Mma, members

STORE_MMA = {
    "f32": """for (int i = 0; i < 4; i++)
    tw::store_global(C + (g + i / 2 * 8) * 8 + t * 2 + i % 2, d[i]);""",
    "f16": """for (int i = 0; i < 2; i++)
    tw::store_global((u32 *)(C + (g + i * 8) * 8 + t * 2), d[i]);""",
}


def mma_case(member: Mma):
    """D = A B with A row-major and B's columns contiguous, fragments loaded word by word."""
    per = 32 // ELEMENT_BITS[member.a]
    inputs = {
        "A": numbers(member.a, 1, (16, member.k)),
        "B": numbers(member.b, 2, (8, member.k)),
    }
    body = f"""
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  u32 a[{member.a_registers}], b[{member.b_registers}];
  for (int i = 0; i < {member.a_registers}; i++) {{
    const int row = g + i % 2 * 8, column = (t + i / 2 * 4) * {per};
    a[i] = tw::load_global((const u32 *)(A + row * {member.k} + column));
  }}
  for (int i = 0; i < {member.b_registers}; i++)
    b[i] = tw::load_global((const u32 *)(B + g * {member.k} + (t + i * 4) * {per}));
  {C_TYPE[member.d]} d[{member.d_registers}] = {{}};
  tw::{member.name}(d, a, b);
  tw::{member.name}(d, a, b);
  {STORE_MMA["f16" if member.d == "f16" else "f32"]}"""
    made = kernel(member.name + "_case", body, inputs, operand("C", NAMES[member.d], (16, 8)))
    return made, inputs, 2 * product(inputs["A"], inputs["B"].T)


MMAS = [m for m in members() if isinstance(m, Mma)]


@pytest.fixture(scope="module")
def mma_cases(emulator):
    cases = {member.name: mma_case(member) for member in MMAS}
    emulator.build([made for made, _, _ in cases.values()])
    return cases


@pytest.mark.parametrize("name", [m.name for m in MMAS])
def test_mma_is_a_product_of_its_fragments(emulator, mma_cases, name):
    made, inputs, expected = mma_cases[name]
    result = output_of(emulator.run(made, inputs, EAGER))
    np.testing.assert_array_equal(result.astype(np.float64), expected)


def test_tf32_ignores_the_low_bits(emulator, mma_cases):
    made, inputs, _ = mma_cases["mma_m16n8k8_f32_tf32_tf32"]
    near = np.nextafter(inputs["A"], np.inf, dtype=np.float32)
    near[inputs["A"] <= 0] = inputs["A"][inputs["A"] <= 0]
    result = output_of(emulator.run(made, {**inputs, "A": near}, EAGER))
    np.testing.assert_array_equal(result, 2 * product(inputs["A"], inputs["B"].T))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_lane_its_pair(emulator, count, transposed):
    """Lane l holds row l / 4, columns 2 (l % 4) and the next, of each (transposed) matrix, and no
    register beside those is written."""
    source = np.arange(count * 64, dtype=np.int32).reshape(count, 8, 8).astype(np.float16)
    suffix = "_trans" if transposed else ""
    body = f"""
  const u32 s = tw::shared_base();
  const int lane = threadIdx.x;
  f16 row[8];
  if (lane < {count * 8}) {{
    tw::load_global<8>(row, A + lane * 8);
    tw::store_shared<8>(s + lane * 16, row);
  }}
  tw::sync_warp();
  struct {{ u32 r[{count}], beyond; }} at;
  at.beyond = 7;
  tw::ldmatrix_x{count}{suffix}(at.r, s + lane % {count * 8} * 16);
  for (int i = 0; i < {count}; i++)
    if (at.beyond == 7) tw::store_global((u32 *)(C + (i * 32 + lane) * 2), at.r[i]);"""
    made = kernel(
        f"ldmatrix{count}{suffix}",
        body,
        {"A": source},
        operand("C", "float16", (count, 32, 2)),
        shared=count * 128,
    )
    result = output_of(emulator.run(made, {"A": source}, EAGER))
    seen = source.transpose(0, 2, 1) if transposed else source
    np.testing.assert_array_equal(result, seen.reshape(count, 32, 2))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix_is_the_reverse_of_ldmatrix(emulator, count, transposed):
    source = np.arange(count * 64, dtype=np.int32).reshape(count, 32, 2).astype(np.float16)
    suffix = "_trans" if transposed else ""
    body = f"""
  const u32 s = tw::shared_base();
  const int lane = threadIdx.x;
  u32 r[{count}];
  for (int i = 0; i < {count}; i++) r[i] = tw::load_global((const u32 *)(A + (i * 32 + lane) * 2));
  tw::stmatrix_x{count}{suffix}(s + lane % {count * 8} * 16, r);
  tw::sync_warp();
  f16 row[8];
  if (lane < {count * 8}) {{
    tw::load_shared<8>(row, s + lane * 16);
    tw::store_global<8>(C + lane * 8, row);
  }}"""
    made = kernel(
        f"stmatrix{count}{suffix}",
        body,
        {"A": source},
        operand("C", "float16", (count, 8, 8)),
        shared=count * 128,
    )
    result = output_of(emulator.run(made, {"A": source}, EAGER))
    seen = result.transpose(0, 2, 1) if transposed else result
    np.testing.assert_array_equal(seen.reshape(count, 32, 2), source)

"""Matrix instructions against plain matrix products, by the fragment layouts of the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest

from measure.cuda.emulator import Emulator
from spaces.cuda.intrinsics.families import ELEMENT_BITS, Mma, Wgmma, members
from spaces.dtypes import dtype
from tests.measure.cuda.cuda_kernels import (
    EAGER,
    kernel,
    operand,
    outcomes,
    output_of,
    small_integers,
)

NAMES = {
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "s8": "int8",
    "s32": "int32",
}
C_TYPE = {"f32": "float", "s32": "i32", "f16": "u32"}


def numbers(kind: str, seed: int, shape: tuple[int, int]) -> np.ndarray:
    return small_integers(seed, shape, dtype(NAMES[kind]).numpy)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.fixture(scope="module")
def emulator():
    with Emulator(batch=16) as made:
        yield made


# ---------------------------------------------------------------- mma.sync

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


# ---------------------------------------------------------------- ldmatrix, stmatrix


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


# ---------------------------------------------------------------- wgmma


def swizzled_image(rows: np.ndarray, swizzle: int) -> bytes:
    """Rows of ``swizzle`` bytes as TMA leaves them: the 16-byte pieces of each row permuted.

    With pieces of 128 bytes of address space as the unit, piece p of row r goes to p XOR r mod 8
    (128 bytes), r / 2 mod 4 (64), r / 4 mod 2 (32).
    """
    data = rows.view(np.uint8).reshape(len(rows), swizzle // 16, 16)
    out = np.empty_like(data)
    for r in range(len(rows)):
        turn = r * swizzle // 128 % (swizzle // 16)
        for piece in range(swizzle // 16):
            out[r, piece ^ turn] = data[r, piece]
    return out.tobytes()


def k_major(tile: np.ndarray, swizzle: int) -> tuple[bytes, int, int]:
    """Shared image, leading and stride bytes of a tile [rows, k] of 32 bytes of K."""
    if swizzle:
        wide = np.zeros((len(tile), swizzle // tile.itemsize), tile.dtype)
        wide[:, : tile.shape[1]] = tile
        return swizzled_image(wide, swizzle), 16, 8 * swizzle
    # bricks of 8 rows by 16 bytes, first along K
    bricks = tile.view(np.uint8).reshape(len(tile) // 8, 8, 2, 16).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(bricks).tobytes(), 128, 256


def mn_major(tile: np.ndarray, swizzle: int) -> tuple[bytes, int, int]:
    """The same for rows contiguous in memory: image of [k = 16, rows] in panels of a swizzle."""
    by_k = np.ascontiguousarray(tile.T)
    per = (swizzle or 16) // tile.itemsize
    panels = [np.ascontiguousarray(by_k[:, i : i + per]) for i in range(0, by_k.shape[1], per)]
    if swizzle:
        image = b"".join(swizzled_image(panel, swizzle) for panel in panels)
        return image, 16 * swizzle, 8 * swizzle
    return b"".join(panel.tobytes() for panel in panels), 128, 256


STORE_WGMMA = {
    "f32": """for (int i = 0; i < {n} / 2; i++)
    tw::store_global(C + (w * 16 + g + i / 2 % 2 * 8) * {n} + i / 4 * 8 + t * 2 + i % 2, d[i]);""",
    "f16": """for (int i = 0; i < {n} / 4; i++)
    tw::store_global((u32 *)(C + (w * 16 + g + i % 2 * 8) * {n} + i / 2 * 8 + t * 2), d[i]);""",
}


def wgmma_case(member: Wgmma, swizzle: int):
    a, b = numbers(member.a, 3, (64, member.k)), numbers(member.b, 4, (member.n, member.k))
    a_image, a_leading, a_stride = (mn_major if member.majors[:1] == "t" else k_major)(a, swizzle)
    b_image, b_leading, b_stride = (mn_major if member.majors[1:] == "t" else k_major)(b, swizzle)
    b_start = -(-len(a_image) // 1024) * 1024
    image = np.frombuffer(a_image.ljust(b_start, b"\0") + b_image, np.int8)
    inputs = {"image": image, "A": a}
    per = 32 // ELEMENT_BITS[member.a]
    descriptor = f"tw::wgmma_descriptor<{swizzle}>"
    fragment = f"""u32 a[4];
  for (int i = 0; i < 4; i++) {{
    const int row = w * 16 + g + i % 2 * 8, column = (t + i / 2 * 4) * {per};
    a[i] = tw::load_global((const u32 *)(A + row * {member.k} + column));
  }}
"""
    from_shared = f"const u64 a = {descriptor}(s, {a_leading}, {a_stride});"
    register = {"f32": "float", "s32": "i32", "f16": "u32"}[member.d]
    body = f"""
  const u32 s = tw::shared_base();
  const int lane = threadIdx.x % 32, w = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  for (int i = threadIdx.x * 16; i < {len(image)}; i += 128 * 16) {{
    i8 piece[16];
    tw::load_global<16>(piece, image + i);
    tw::store_shared<16>(s + i, piece);
  }}
  tw::fence_async();
  tw::sync_block();
  {fragment if member.source == "rs" else from_shared}
  const u64 b = {descriptor}(s + {b_start}, {b_leading}, {b_stride});
  {register} d[{member.d_registers}];
  tw::wgmma_fence();
  tw::{member.name}(d, a, b, 0);
  tw::{member.name}(d, a, b, 1);
  tw::wgmma_commit();
  tw::wgmma_wait<0>();
  {STORE_WGMMA["f16" if member.d == "f16" else "f32"].format(n=member.n)}"""
    made = kernel(
        f"{member.name}_swizzle{swizzle}",
        body,
        inputs,
        operand("C", NAMES[member.d], (64, member.n)),
        threads=128,
        shared=len(image),
    )
    return made, inputs, 2 * product(a, b.T)


def wgmma_members():
    """All operand types and sources with all majors at two sizes of N, each with all swizzles."""
    for member in members():
        if isinstance(member, Wgmma) and member.n in (24, 64):
            for swizzle in (0, 32, 64, 128):
                columns = (swizzle or 16) // 2
                if "t" in member.majors[1:] and member.n % columns:
                    continue  # a panel of N would be cut
                if member.n == 24 and swizzle in (0, 64):
                    continue
                yield member, swizzle


WGMMAS = list(wgmma_members())


@pytest.fixture(scope="module")
def wgmma_cases(emulator):
    cases = {(m.name, swizzle): wgmma_case(m, swizzle) for m, swizzle in WGMMAS}
    emulator.build([made for made, _, _ in cases.values()])
    return cases


@pytest.mark.parametrize(("name", "swizzle"), [(m.name, swizzle) for m, swizzle in WGMMAS])
def test_wgmma_is_a_product_through_its_descriptors(emulator, wgmma_cases, name, swizzle):
    made, inputs, expected = wgmma_cases[name, swizzle]
    result = output_of(emulator.run(made, inputs, EAGER))
    np.testing.assert_array_equal(result.astype(np.float64), expected)


def test_wgmma_lands_only_at_its_wait(emulator, wgmma_cases):
    made, inputs, expected = wgmma_cases["wgmma_m64n64k16_f32_f16_f16_ss", 128]
    for result in outcomes(emulator, made, inputs).values():
        np.testing.assert_array_equal(output_of(result), expected)
    early = kernel(
        "early",
        made.source.body[made.source.body.index("{") + 1 : made.source.body.rindex("}")]
        .replace("tw::wgmma_wait<0>();", "")
        .rstrip()
        + "\n  tw::wgmma_wait<0>();",
        inputs,
        made.call.arrays[-1],
        threads=128,
        shared=made.call.launches[0].shared_bytes,
    )
    wrong = output_of(outcomes(emulator, early, inputs)["lazy"])
    assert not np.array_equal(wrong, expected)

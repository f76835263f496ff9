"""wgmma against plain matrix products, through descriptors of shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import EAGER, kernel, operand, outcomes, output_of
from tests.measure.cuda.emulator.products.matrices import NAMES, numbers, product
from tilewright.spaces.cuda.intrinsics.families import ELEMENT_BITS, Wgmma, members


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

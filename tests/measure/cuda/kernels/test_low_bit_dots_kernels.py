"""Kernels of int8 activations and packed codes: widths, tails, planted bugs, exact sums."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.test_low_bit_ring_kernels import PLAIN, SM_80, TEAMS, few
from tests.spaces.cpu.low_bit_dots.test_template import GROUPS, SCALED
from tests.spaces.cpu.low_bit_dots.test_template import PLAIN as PLAINLY
from tilewright.spaces.cuda.low_bit_dots import CudaLowBitDots
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload


def product(q: str, text: str, m: int, n: int, k: int) -> Workload:
    return workload(f"q: {q}[n, k](packed); {text}", m=m, n=n, k=k)


@deferred
def case(q: str, text: str, sizes: tuple[int, ...], arch="sm_90a", blocks=2, **v) -> Case:
    """The workload of ``sizes`` m, n and k, and the kernel of a schedule for a GPU of as many
    multiprocessors as ``blocks``."""
    w, target = product(q, text, *sizes), few(arch, blocks)
    own = Space(w, target, [CudaLowBitDots(w, target)])
    schedule = Schedule("low_bit_dots", tuple((PLAIN | v).items()))
    assert own.why_not(schedule) is None, own.why_not(schedule)
    return w, own.lower(schedule)


COLUMNS = "z: int8[n]; x: int8[m, k]; y[m, n] = sum[k](x[m, k] * (q[n, k] - z[n]) * s[n])"
CASES = {
    "1 bit": case("uint1", SCALED.format(g=64), (9, 72, 320), tile_rows=16, warp_tiles=3),
    "2 bits": case("uint2", GROUPS.format(g=64), (3, 33, 256), stage_depth=2, warp_tiles=2),
    "3 bits": case("int3", PLAINLY, (2, 40, 208), blocks=8, stages=3, splits=2),
    "4 bits": case(
        "uint4",
        SCALED.format(g=128),
        (17, 150, 768),
        tile_rows=24,
        warp_tiles=3,
        interleave=3,
        **TEAMS,
    ),
    "by lanes": case("int4", GROUPS.format(g=64), (5, 50, 384), arch="sm_80", **TEAMS),
    "6 bits": case("uint6", COLUMNS, (1, 40, 144)),
    "8 bits": case("uint8", GROUPS.format(g=128), (2, 20, 256), warp_depth=2),
    "signed 8 bits": case("int8", SCALED.format(g=64), (2, 20, 128), arch="sm_80"),
}
BUGS = {
    "no wait for a stage": ("4 bits", r"tw::mbarrier_wait\(.*?\);", ""),
    "bytes that never come": ("4 bits", r"\+ 512 \* there\)", "+ 512 * there + 16)"),
    "no wait for copies": ("by lanes", r"cp_async_wait<1>", "cp_async_wait<2>"),
    "swapped nibbles": ("4 bits", r"\(\(w0 >> 4\) & 0xf0f0f0f\)", "(w0 & 0xf0f0f0f)"),
    "halves of the rows changed": ("4 bits", r"a\[1\] = ", "a[0] = "),
    "activations of another step": ("4 bits", r"\(32 \^", "(16 ^"),
    "activations joined in turn": ("2 bits", r"0x5140", "0x5410"),
    "the right operand of another tile": ("2 bits", r"\{b1\[r\]\[0\]", "{b0[r][0]"),
    "another zero point": ("4 bits", r"\*= -8", "*= -7"),
    "the zero point of the other half": ("2 bits", r"\(i32\)zero1", "(i32)zero0"),
    "zero point twice": ("2 bits", r"next_zero\[v\]\)", "next_zero[v] * 2)"),
    "sums of other activations": ("2 bits", r"all1\[r\]\[0\]", "all0[r][0]"),
    "the sign": ("by lanes", r"\(i32\)zero0 - 8", "(i32)zero0 - 0"),
    "the highest bit": ("8 bits", r" \^ 0x80808080", ""),
    "the scale of the other half": ("4 bits", r"t\[i\]\[r\]\[2\], scale1", "t[i][r][2], scale0"),
    "a code's bits across words": ("3 bits", r"& 0x20002\)", "& 0x40004)"),
    "a part is left out": ("3 bits", r"other < 2;", "other < 1;"),
}  # fmt: skip


class TestDotKernels(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("q", ["uint1", "int4", "uint7", "uint8", "int8"])
def test_the_largest_sums_are_exact(emulator, q):
    m, n, k = 3, 16, 256
    w, values = product(q, PLAINLY, m, n, k), dtype(q).values
    own = Space(w, SM_80, [CudaLowBitDots(w, SM_80)])
    kernel = own.lower(Schedule("low_bit_dots", tuple(PLAIN.items())))
    x = np.stack([np.full(k, -128), np.full(k, 127), np.resize([127, -128], k)]).astype("i1")
    codes = np.stack([np.full(k, values.argmin()), np.full(k, values.argmax())] * (n // 2))
    emulator.build([kernel])
    found = emulator.run(kernel, {"x": x, "q": tilewright.pack(codes.astype("u1"), q)})
    np.testing.assert_array_equal(found.outputs["y"], x.astype("f8") @ values[codes].T)


@pytest.mark.parametrize(
    ("q", "text", "k", "said"),
    [
        ("uint4", "y[m, n] = sum[k](a[m, k] * q[n, k])", 64, "a[m, k] is multiplied by codes"),
        ("float4_e2m1", PLAINLY, 64, "q has float4_e2m1; needs whole numbers"),
        ("uint4", PLAINLY, 72, "k is 72; allowed: multiples of 16"),
        ("uint4", SCALED.format(g=32), 64, "groups of 32 along k; allowed: multiples of 64"),
        ("uint4", PLAINLY.replace("x[m, k] *", "x[m, 63 - k] *"), 64, "x[m, 63 - k] is no row of"),
    ],
)  # fmt: skip
def test_what_has_no_kernels_is_said(q, text, k, said):
    found = CudaLowBitDots.why_not(product(q, text, 2, 16, k), SM_80)
    assert str(found).startswith(said)


def test_every_rule_speaks():
    forms = ((128, 3, 1024), (512, 40, 1024), (192, 3, 1152), (192, 3, 576))
    given = [product("uint4", SCALED.format(g=g), m, 300, k) for g, m, k in forms]
    assert not silent_rules([Space(w, SM_80, [CudaLowBitDots(w, SM_80)]) for w in given], 60)

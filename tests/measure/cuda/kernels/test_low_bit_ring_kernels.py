"""Kernels whose packed codes stream through rings: every width, both 16-bit floats, planted bugs,
machine code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.measure.cuda.kernels.test_low_bit_matrix_kernels import (
    BRAIN,
    BYTES,
    FLOATS,
    FORMS,
    GROUPS,
    HALVES,
    PLAINLY,
    POWERS,
    SCALED,
    check_exact,
    product,
    scaled,
)
from tests.spaces.cpu.low_bit.test_template import NAMES
from tilewright import pack
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.low_bit_ring import LowBitRaised, LowBitRing
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language import inputs
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload

PLAIN: dict[str, int | str] = {
    "tile_rows": 8,
    "warp_tiles": 1,
    "warp_columns": 1,
    "warp_depth": 1,
    "stages": 2,
    "stage_depth": 1,
    "interleave": 1,
    "splits": 1,
    "scales": "late",
}
BY_COLUMN = (
    "s: bfloat16[k // {g}, n]; y[m, n] = sum[k](a[m, k] * ((q[n, k] - {z}) * s[k // {g}, n]))"
)
RINGS: dict[str, type[LowBitRing]] = {t.name: t for t in (LowBitRing, LowBitRaised)}


def few(arch: str = "sm_90a", multiprocessors: int = 2) -> CudaTarget:
    """A GPU of so few multiprocessors that blocks have several tiles."""
    return replace(cuda_target(arch), multiprocessors=multiprocessors)


def space(w: Workload, target: CudaTarget, name: str = "low_bit_ring") -> Space:
    """The space of one of both templates."""
    return Space(w, target, [RINGS[name](w, target)])


def plain(space: Space) -> dict[str, int | str]:
    """The values of a plain schedule, with those of its decisions that GPUs may lack."""
    (template,) = space.templates.values()
    has_way = any(decision.name == "multiply" for decision in template.decisions)
    return PLAIN | ({"multiply": "mma"} if has_way else {})


@deferred
def case(
    q: str,
    text: str,
    sizes: tuple[int, ...],
    kind="bfloat16",
    arch="sm_90a",
    name="low_bit_ring",
    blocks=2,
    **v,
) -> Case:
    """The workload of ``sizes`` m, n and k, and the kernel of a schedule for a GPU of as many
    multiprocessors as ``blocks``."""
    w = product(q, text, *sizes, kind)
    own = space(w, few(arch, blocks), name)
    schedule = Schedule(name, tuple((plain(own) | v).items()))
    assert own.why_not(schedule) is None, own.why_not(schedule)
    return w, own.lower(schedule)


EARLY = {"scales": "early"}
TEAMS = {"warp_columns": 2, "warp_depth": 2, "stages": 3}
WGMMA = {"multiply": "wgmma", "warp_columns": 4, "warp_tiles": 2, "stages": 3}
GROUPED = WGMMA | EARLY | {"warp_depth": 2, "stage_depth": 2}
CASES = {
    "1 bit": case("uint1", GROUPS.format(z=1, g=64), (9, 72, 320), tile_rows=16, warp_tiles=3),
    "2 bits": case("int2", SCALED, (3, 33, 136), warp_columns=2, stages=3),
    "3 bits": case(
        "uint3", GROUPS.format(z=4, g=32), (20, 80, 256), tile_rows=24, stage_depth=2, **EARLY
    ),
    "4 bits": case(
        "uint4",
        GROUPS.format(z=8, g=128),
        (17, 150, 768),
        tile_rows=24,
        warp_tiles=3,
        interleave=3,
        **TEAMS,
    ),
    "by lanes": case(
        "uint4", GROUPS.format(z=8, g=128), (17, 150, 768), arch="sm_80", warp_tiles=3, **TEAMS
    ),
    "passes": case(
        "uint4", GROUPS.format(z=8, g=128), (5, 200, 512), warp_tiles=4, warp_depth=2, interleave=2
    ),
    "5 bits": case("int5", SCALED, (1, 50, 384), blocks=8, splits=2, stages=3, warp_depth=2),
    "6 bits": case(
        "uint6",
        GROUPS.format(z=31, g=16),
        (12, 65, 144),
        "float16",
        tile_rows=16,
        warp_tiles=3,
    ),
    "7 bits": case("uint7", SCALED.replace("3", "0.5"), (2, 40, 88), warp_tiles=2),
    "8 bits": case("uint8", GROUPS.format(z=128, g=128), (33, 35, 256), tile_rows=40, **EARLY),
    "8 bits, halves": case("int8", SCALED, (5, 20, 64), "float16", "sm_80"),
    "bytes": case("uint4", BYTES.format(g=64), (2, 33, 192), warp_tiles=2, **EARLY),
    "float of 4": case(
        "float4_e2m1", FLOATS.format(g=32), (40, 104, 480), tile_rows=40, warp_tiles=4
    ),
    "float of 8": case("float8_e4m3fn", FLOATS.format(g=128), (2, 33, 256), warp_depth=4, **EARLY),
    "warpgroups": case(
        "uint4", GROUPS.format(z=8, g=32), (17, 300, 512), tile_rows=24, blocks=3, **GROUPED
    ),
    "warpgroups, bytes": case("int8", SCALED, (9, 140, 200), tile_rows=16, blocks=2, **WGMMA),
    "powers": case("float4_e2m1", POWERS, (9, 40, 320), tile_rows=16, **EARLY),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no wait for a stage": ("4 bits", r"tw::mbarrier_wait\(.*?\);", ""),
    "a stage is filled too early": ("4 bits", r"tw::mbarrier_wait\(empty.*?\);", ""),
    "a stage is empty too early": (
        "4 bits",
        r"mbarrier_init\(empty \+ 8 \* i, 2\)",
        "mbarrier_init(empty + 8 * i, 1)",
    ),
    "barriers are seen too early": ("4 bits", r"tw::fence_barrier_init\(\);", ""),
    "bytes that never come": ("4 bits", r"\+ 512 \* there\)", "+ 512 * there + 16)"),
    "the next phase": ("4 bits", r"parity \^= 1;", ""),
    "the stage before": ("4 bits", r"\(slot \+ i\) % 3;(?=\s*const u32 b)", "slot;"),
    "no fence of warpgroups": ("warpgroups", r"tw::wgmma_fence\(\);", ""),
    "fragments are decoded too early": (
        "warpgroups",
        r"(?s)(wait<1>.*?)wgmma_wait<1>",
        r"\1wgmma_wait<2>",
    ),
    "sums are left too early": ("warpgroups", r"tw::wgmma_wait<0>\(\);", ""),
    "a step of other activations": ("warpgroups", r"<128>\(x \+ 32", "<128>(x + 64"),
    "the next tile's sums": ("warpgroups", r"\(s\[1\]", "(s[0]"),
    "no wait for copies": ("by lanes", r"cp_async_wait<1>", "cp_async_wait<2>"),
    "no barrier behind copies": ("by lanes", r"(wait<1>\(\);\s*)tw::sync_named\(.*?\);", r"\1"),
    "rows beyond the last": ("by lanes", r"row < 17 && depth", "row < 18 && depth"),
    "sums before the rings end": (
        "4 bits",
        r"tw::sync_block\(\);(?=\s*#pragma unroll\s*.*\s*#pragma unroll\s*.*\s*tw::st)",
        "",
    ),
    "sums before they are there": ("4 bits", r"tw::sync_block\(\);(?=\s*for[^{]*\{\s*float)", ""),
    "a pass too few": ("passes", r"begin < tiles", "begin + 4 < tiles"),
    "no barrier behind a pass": ("passes", r"tw::fence_async\(\);\s*tw::sync_block\(\);", ""),
    "columns of the next block": ("4 bits", r"column < end", "column < 150"),
    "a tile too far": ("4 bits", r"across < 0 \? across", "across < 1 ? 1"),
    "the depth of another block": (
        "4 bits",
        r"on - last \+ first;(?=\s*const int to = \(slot == 0)",
        "on - last + first + 1;",
    ),
    "a warp's tiles twice": ("4 bits", r"\(0 \+ own \* 3", "(0 + 0 * 3"),
    "scales of another warp": ("4 bits", r"shared \+ (\d+) \+ warp", r"shared + \1 + own"),
    "the scale of another run": (
        "4 bits",
        r"(n \+ 2 < turns\) \{\s*const int on = begun \+)",
        r"\1 2 +",
    ),
    "a run too few": ("4 bits", r"if \(n % 2 == 0\)", "if (n % 4 == 0)"),
    "the scale of the other half": ("4 bits", r"t\[i\]\[r\]\[2\], scale1", "t[i][r][2], scale0"),
    "the scale of the neighbouring group": ("6 bits", r"part \* 16", "part / 2 * 32"),
    "halves of the rows changed": ("4 bits", r"a\[1\] = ", "a[0] = "),
    "another zero point": ("4 bits", r"0xc308c308u", "0xc309c309u"),
    "the zero point of the other half": ("bytes", r", zero1\)", ", zero0)"),
    "the sign": ("2 bits", r"in_register\(0x43024302u", "in_register(0x43004300u"),
    "a code's bits across words": ("3 bits", r"& 0x20002u", "& 0x40004u"),
    "the highest bit": ("8 bits", r"0xc380c380u", "0xc300c300u"),
    "a float's exponent": ("float of 4", r"0x7e807e80u", "0x7f007f00u"),
    "activations of the other half": ("4 bits", r"\+ 32\) \^", "+ 0) ^"),
    "sums of another row": ("4 bits", r"lane % 4 \* 2 \+ 1", "lane % 4 * 2"),
    "a part is left out": ("5 bits", r"other < 2;", "other < 1;"),
    "a warp is left out": ("4 bits", r"w < 2; w\+\+", "w < 1; w++"),
}


class TestRingKernels(KernelContract):
    cases, bugs = CASES, BUGS


def raised(*given, **values):
    """A case of the template of raised sums."""
    return case(*given, name="low_bit_raised", **values)


RAISED_CASES = {
    "1 bit": raised("uint1", GROUPS.format(z=1, g=64), (9, 72, 320), tile_rows=16),
    "2 bits": raised("int2", SCALED, (3, 33, 136), warp_columns=2, stages=3),
    "3 bits": raised("uint3", GROUPS.format(z=4, g=32), (20, 80, 256), tile_rows=24, stage_depth=2),
    "4 bits": raised("uint4", BY_COLUMN.format(z=8, g=128), (17, 150, 768), tile_rows=24, **TEAMS),
    "6 bits": raised("uint6", GROUPS.format(z=31, g=16), (12, 65, 144), "float16"),
    "7 bits": raised("uint7", SCALED.replace("3", "0.5"), (2, 40, 88), warp_tiles=2),
    "8 bits": raised("int8", SCALED, (5, 20, 64), "float16", "sm_80"),
    "bytes": raised("uint4", BYTES.format(g=32), (2, 33, 192), warp_tiles=2),
}
RAISED_BUGS = {
    "activations are not divided": ("3 bits", r"0x3e003e00u", "0x3f803f80u"),
    "too much is too little": ("4 bits", r"0xc308c308u, 0xc308c308u", "0xc300c300u, 0u"),
    "what the part before has too much": ("3 bits", r"pair, less1\[r\]", "pair, less0[r]"),
    "too much of other rows": ("4 bits", r"less0\[r\], a, pair", "less0[0], a, pair"),
    "the zero point of the other half": ("bytes", r"fused\(zero1", "fused(zero0"),
    "the zero point twice": ("bytes", r"next_zero\[v\]\);", "next_zero[v] * 2);"),
    "sums of other activations": ("bytes", r"all1\[r\]\[0\]", "all0[r][0]"),
    "half a zero point": ("7 bits", r"-0x1.0{0,13}p-1f", "0.0f"),
}


class TestRaisedKernels(KernelContract):
    numerics = Numerics.FAST
    cases, bugs = RAISED_CASES, RAISED_BUGS


def one_hot(names, kind, template):
    """One-hot activations for codes of every value that is finite."""
    n, k = 50, 72
    for name in names:
        values = dtype(name).values
        finite = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
        codes = np.random.default_rng(0).permutation(np.resize(finite, n * k)).reshape(n, k)
        more = {"tile_rows": 24, "warp_tiles": 2, "interleave": 2}
        given = case(name, PLAINLY, (k, n, k), kind, name=template, blocks=6, **more)
        yield given, codes, np.eye(k), values[codes].T


WHOLE = tuple(name for name in BRAIN if dtype(name).is_integer)


@pytest.mark.parametrize("template", RINGS)
def test_each_weight_comes_back(emulator, template):
    names = [n for n in NAMES if n in BRAIN]
    if template == "low_bit_raised":
        names = [n for n in names if n in WHOLE and dtype(n).bits < 8]
    check_exact(emulator, one_hot(names, "bfloat16", template))


@pytest.mark.slow
@pytest.mark.parametrize("template", RINGS)
@pytest.mark.parametrize(("names", "kind"), [(BRAIN, "bfloat16"), (HALVES, "float16")])
def test_each_weight_of_each_width_comes_back(emulator, names, kind, template):
    if template == "low_bit_raised":
        names = [n for n in names if n in WHOLE and (kind == "float16" or dtype(n).bits < 8)]
    check_exact(emulator, one_hot(names, kind, template))


@pytest.mark.slow
@pytest.mark.parametrize("template", RINGS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("q", "text", "sizes", "kind"), FORMS)
@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_more_schedules_agree_with_the_reference(q, text, sizes, kind, arch, template, blocks):
    w, target = product(q, text, *sizes, kind), few(arch, blocks)
    if RINGS[template].why_not(w, target):
        pytest.skip("codes are no bits of a fraction")
    own = space(w, target, template)
    verdicts = list(emulate(own, draw(own, 8, blocks)))
    assert len(verdicts) > 1
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


def test_every_rule_speaks():
    sizes = [
        ("uint4", GROUPS.format(z=8, g=128), 16, 4000, 8192),
        ("uint8", SCALED, 40, 40960, 192),
        ("uint2", GROUPS.format(z=1, g=192), 8, 64, 384),
    ]
    spaces = [space(product(*each), cuda_target("sm_80")) for each in sizes]
    spaces.append(space(scaled("float16", "float32"), few("sm_80")))
    assert not silent_rules(spaces, 400)


@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("q", ["uint4", "int3", "float4_e2m1", "uint8"])
def test_nothing_spills_and_codes_are_decoded_in_few_instructions(arch, q, name):
    w = product(q, BY_COLUMN.format(z=2, g=128), 16, 28672, 8192)
    target = cuda_target(arch)
    if RINGS[name].why_not(w, target):
        pytest.skip("codes are no bits of a fraction")
    more = {"tile_rows": 16, "warp_tiles": 7, "warp_depth": 4, "interleave": 1}
    own = space(w, target, name)
    tiles = 7 if arch == "sm_90a" else 6
    schedule = Schedule(name, tuple((plain(own) | more | {"warp_tiles": tiles}).items()))
    assert own.why_not(schedule) is None, own.why_not(schedule)
    found = instructions(arch, (w, own.lower(schedule)))
    assert found["LDL"] == found["STL"] == 0
    assert found["HMMA"] >= tiles * 4 * 2
    assert found["LDS.128"] >= tiles * (dtype(q).bits // 4)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("scales", ["late", "early"])
def test_infinite_scales_leave_no_finite_sums_and_others_alone(emulator, value, scales):
    w, kernel = case("uint4", GROUPS.format(z=8, g=64), (5, 33, 192), scales=scales)
    arrays = dict(inputs.draw(w.program, 0))
    s = arrays["s"].copy()
    s[7, 1] = value
    found = emulator.run(kernel, arrays | {"q": pack(arrays["q"], "uint4"), "s": s}).outputs["y"]
    known = allowed(w.program, arrays | {"s": s})["y"]
    assert not np.isfinite(found[:, 7]).any()
    assert agrees(found, *known)[:, np.arange(33) != 7].all()

"""Kernels whose packed codes stream through rings: every width, both 16-bit floats, planted bugs,
machine code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright
from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.cpu.low_bit.test_template import ALL_NAMES, NAMES
from tilewright.measure.cuda.emulator import INTERLEAVINGS
from tilewright.measure.drawing.program_sensitivity import sensitivity
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.low_bit.template import CudaLowBit
from tilewright.spaces.cuda.low_bit_ring import LowBitRaised, LowBitRing
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language import inputs
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.operators import workload
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
GROUPS = "y[m, n] = sum[k](a[m, k] * ((q[n, k] - {z}) * s[n, k // {g}]))"
FLOATS = "y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // {g}])"
BYTES = "z: uint8[n, k // {g}]; " + GROUPS.format(z="z[n, k // {g}]", g="{g}")
POWERS = "e: uint8[n, k // 32]; y[m, n] = sum[k](a[m, k] * q[n, k] * exp2(e[n, k // 32] - 127))"
SCALED = "y: float16[m, n]; y[m, n] = sum[k](a[m, k] * (q[n, k] - 3)) * s[n]"
WEIGHTED = "y[m, n] = sum[k](a[m, k] * (q[n, k] - {z}) * s[n])"
PLAINLY = "y[m, n] = sum[k](a[m, k] * q[n, k])"
BY_COLUMN = (
    "s: bfloat16[k // {g}, n]; y[m, n] = sum[k](a[m, k] * ((q[n, k] - {z}) * s[k // {g}, n]))"
)
SM_80 = cuda_target("sm_80")
RINGS: dict[str, type[LowBitRing]] = {t.name: t for t in (LowBitRing, LowBitRaised)}


def product(q: str, text: str, m: int, n: int, k: int, kind: str = "bfloat16"):
    """A product with activations and scales of 16 bits."""
    scales = f"s: {kind}[n, k // {text.rpartition('//')[2].partition(']')[0].strip()}]; "
    scales = scales if "s[n, k //" in text else f"s: {kind}[n]; " if "s[n]" in text else ""
    return workload(f"q: {q}[n, k](packed); a: {kind}[m, k]; {scales}{text}", m=m, n=n, k=k)


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
    "2 bits": raised("int2", WEIGHTED.format(z=3), (3, 33, 136), warp_columns=2, stages=3),
    "3 bits": raised("uint3", GROUPS.format(z=4, g=32), (20, 80, 256), tile_rows=24, stage_depth=2),
    "4 bits": raised("uint4", BY_COLUMN.format(z=8, g=128), (17, 150, 768), tile_rows=24, **TEAMS),
    "6 bits": raised("uint6", GROUPS.format(z=31, g=16), (12, 65, 144), "float16"),
    "7 bits": raised("uint7", WEIGHTED.format(z=63.5), (2, 40, 88), warp_tiles=2),
    "8 bits": raised("int8", WEIGHTED.format(z=3), (5, 20, 64), "float16", "sm_80"),
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
    "no zero point": ("7 bits", r"-0x1.fc0*p\+5f", "0.0f"),
}


class TestRaisedKernels(KernelContract):
    numerics = Numerics.FAST
    cases, bugs = RAISED_CASES, RAISED_BUGS


def check_exact(emulator, given) -> None:
    """Each kernel's output is exactly what is said."""
    given = [((w, kernel), *rest) for (w, kernel), *rest in given]
    emulator.build([kernel for (_, kernel), *_ in given])
    for (w, kernel), codes, activations, wanted in given:
        q, a = (w.program.operand[name] for name in "qa")
        arrays = {"q": tilewright.pack(codes, q.dtype), "a": activations.astype(a.element.numpy)}
        if scales := w.program.operand.get("s"):
            arrays["s"] = np.ones(scales.shape, scales.element.numpy)
        found = emulator.run(kernel, arrays)
        assert found.error_kind is None, found.error_text
        np.testing.assert_array_equal(
            found.outputs["y"], wanted.astype(np.float32), err_msg=q.dtype
        )


def scaled(kind: str, scales: str):
    text = f"q: uint8[n, k](packed); a: {kind}[m, k]; s: {scales}[n, k // 64]; "
    return workload(text + GROUPS.format(z=128, g=64), m=1, n=16, k=128)


@pytest.mark.parametrize(
    ("kind", "scales", "ways"),
    [
        ("float16", "float32", ["late"]),
        ("float16", "float16", ["late", "early"]),
        ("float16", "float8_e4m3fn", ["late", "early"]),
        ("bfloat16", "float32", ["late", "early"]),
    ],
)
def test_scales_of_any_size_are_within_the_range_of_what_is_multiplied(
    emulator, kind, scales, ways
):
    w = scaled(kind, scales)
    own = space(w, SM_80)
    points = {
        way: Schedule("low_bit_ring", tuple((PLAIN | {"scales": way}).items()))
        for way in ("late", "early")
    }
    assert [way for way, each in points.items() if own.why_not(each) is None] == ways
    codes = np.random.default_rng(0).integers(0, 256, (16, 128)).astype(np.uint8)
    codes[:, 0] = 128
    given = inputs.draw(w.program, 0)
    sizes = {"float16": (1e-7, 1e-5, 400.0), "float8_e4m3fn": (0.01, 100.0)}.get(
        scales, (3e-8, 1e-5, 1e5, 1e30)
    )
    for way in ways:
        kernel = own.lower(points[way])
        for size in sizes:
            s = np.abs(given["s"] * size) + np.asarray(size, given["s"].dtype)
            arrays = {"q": tilewright.pack(codes, "uint8"), "a": given["a"], "s": s}
            found = emulator.run(kernel, arrays).outputs["y"]
            assert agrees(found, *allowed(w.program, arrays)["y"]).all(), (way, size)


def test_scales_that_are_powers_of_two_in_bytes_show_mistakes():
    given = product("float4_e2m1", POWERS, 9, 40, 320)
    assert sensitivity(given.program).share > 0.5
    e = inputs.draw(given.program, 0)["e"]
    assert e.min() == 119
    assert e.max() == 134


def test_every_byte_is_the_exponent_of_a_power(emulator):
    text = POWERS.replace("k // 32", "k // 64")
    e = np.stack([np.arange(255), np.full(255, 127)], 1).astype(np.uint8)
    codes = np.full((255, 128), 2, np.uint8)  # 1.0
    a = np.eye(1, 128).astype(dtype("bfloat16").numpy)
    arrays = {"q": tilewright.pack(codes, "float4_e2m1"), "a": a, "e": e}
    w = product("float4_e2m1", text, 1, 255, 128)
    fma = Space(w, SM_80, [CudaLowBit(w, SM_80)])
    rows = fma.sample(np.random.default_rng(0), 16)
    _, ring = case("float4_e2m1", text, (1, 255, 128))
    for kernel in (ring, fma.lower(fma.schedule(rows[0]))):
        assert "exp2" not in kernel.source.body
        found = emulator.run(kernel, arrays).outputs["y"]
        np.testing.assert_array_equal(found, np.exp2(np.arange(255.0) - 127)[np.newaxis])


def test_about_half_of_random_schedules_multiply_by_warpgroups():
    w = product("uint4", BY_COLUMN.format(z=8, g=128), 64, 28672, 8192)
    own = space(w, cuda_target("sm_90a"))
    drawn = [own.schedule(row) for row in own.sample(np.random.default_rng(0), 100)]
    share = sum(each["multiply"] == "wgmma" for each in drawn) / len(drawn)
    assert 0.25 < share < 0.75


BRAIN = tuple(name for name in ALL_NAMES if name != "float8_e8m0")
HALVES = tuple(name for name in BRAIN if name != "float8_e3m4")


FORMS = [
    ("uint4", GROUPS.format(z=8, g=128), (70, 50, 256), "bfloat16"),
    ("uint3", BYTES.format(g=16), (9, 40, 144), "bfloat16"),
    ("int6", SCALED, (33, 20, 192), "float16"),
    ("float4_e2m1", FLOATS.format(g=32), (16, 33, 320), "bfloat16"),
    ("float8_e4m3fn", FLOATS.format(g=64), (12, 64, 64), "float16"),
]


def weights(template):
    """A product with weights as they are, or with scales, without which no sums are raised."""
    return WEIGHTED.format(z=0) if template == "low_bit_raised" else PLAINLY


def one_hot(names, kind, template):
    """One-hot activations for codes of every value that is finite."""
    n, k = 50, 72
    for name in names:
        values = dtype(name).values
        finite = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
        codes = np.random.default_rng(0).permutation(np.resize(finite, n * k)).reshape(n, k)
        more = {"tile_rows": 24, "warp_tiles": 2, "interleave": 2}
        given = case(name, weights(template), (k, n, k), kind, name=template, blocks=6, **more)
        yield given, codes, np.eye(k), values[codes].T


def first_term(names, kind, template):
    """Activations that are zero but for the first term, whose codes are all that there are."""
    for name in names:
        values = dtype(name).values
        codes = np.zeros((len(values), 64), np.uint8)
        codes[:, 0] = np.arange(len(values))
        given = case(name, weights(template), (1, len(values), 64), kind, name=template)
        yield given, codes, np.eye(1, 64), values[np.newaxis]


WHOLE = tuple(name for name in BRAIN if dtype(name).is_integer)


@pytest.mark.parametrize("template", RINGS)
def test_each_weight_comes_back(emulator, template):
    names = ["int1", *(n for n in NAMES if n in BRAIN)]
    if template == "low_bit_raised":
        names = [n for n in names if n in WHOLE and dtype(n).bits < 8]
    check_exact(emulator, one_hot(names, "bfloat16", template))
    check_exact(emulator, first_term(names, "bfloat16", template))


@pytest.mark.slow
@pytest.mark.parametrize("template", RINGS)
@pytest.mark.parametrize(("names", "kind"), [(BRAIN, "bfloat16"), (HALVES, "float16")])
def test_each_weight_of_each_width_comes_back(emulator, names, kind, template):
    if template == "low_bit_raised":
        names = [n for n in names if n in WHOLE and (kind == "float16" or dtype(n).bits < 8)]
    check_exact(emulator, one_hot(names, kind, template))
    check_exact(emulator, first_term(names, kind, template))


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
    verdicts = list(emulate(own, draw(own, 80, blocks)[:8]))
    assert verdicts
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


@pytest.mark.parametrize("text", [PLAINLY, SCALED])
def test_sums_of_exact_weights_are_not_raised(text):
    reason = LowBitRaised.why_not(product("uint2", text, 16, 64, 1024), SM_80)
    assert "no scale multiplies weights" in str(reason)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_raised_sums_are_right_where_few_activations_are_not_zero(kind):
    own = space(product("uint2", WEIGHTED.format(z=3), 8, 32, 1024, kind), few(), "low_bit_raised")
    (verdict,) = emulate(own, draw(own, 20)[:1], INTERLEAVINGS[:1])
    assert verdict.right, verdict.error_text


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
    found = emulator.run(
        kernel, arrays | {"q": tilewright.pack(arrays["q"], "uint4"), "s": s}
    ).outputs["y"]
    known = allowed(w.program, arrays | {"s": s})["y"]
    assert not np.isfinite(found[:, 7]).any()
    assert agrees(found, *known)[:, np.arange(33) != 7].all()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (GROUPS.format(z="z[n, k // 64]", g=64), "bfloat16"),
        (GROUPS.format(z=0.001, g=64), "bfloat16"),
        (GROUPS.format(z=1, g=8), "bfloat16"),
        (GROUPS.format(z=1, g=64), "float32"),
        (PLAINLY.replace("a[m, k]", "(a[m, k] * a[m, k])"), "float16"),
        (PLAINLY.replace("q[n, k]", "t[q[n, k]]"), "float16"),
    ],
)
def test_what_is_not_exact_in_16_bits_is_not_multiplied_on_tensor_cores(text, kind):
    assert LowBitRing.why_not(product("uint4", text, 8, 32, 128, kind), SM_80)

"""Kernels with packed codes on tensor cores: every width, both 16-bit floats, planted bugs, machine
code."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.cpu.low_bit.test_template import ALL_NAMES, NAMES
from tilewright.measure.drawing.program_sensitivity import sensitivity
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.low_bit.template import CudaLowBit
from tilewright.spaces.cuda.low_bit_ring import LowBitRing
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language import inputs
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules

SM_80 = cuda_target("sm_80")
PLAIN: dict[str, int | str] = {
    "tile_rows": 8,
    "warp_tiles": 1,
    "warp_columns": 1,
    "warp_depth": 1,
    "in_flight": 1,
    "block_depth": 1,
    "splits": 1,
    "scales": "late",
    "multiply": "mma",
}
GROUPS = "y[m, n] = sum[k](a[m, k] * ((q[n, k] - {z}) * s[n, k // {g}]))"
FLOATS = "y[m, n] = sum[k](a[m, k] * q[n, k] * s[n, k // {g}])"
BYTES = "z: uint8[n, k // {g}]; " + GROUPS.format(z="z[n, k // {g}]", g="{g}")
POWERS = "e: uint8[n, k // 32]; y[m, n] = sum[k](a[m, k] * q[n, k] * exp2(e[n, k // 32] - 127))"
SCALED = "y: float16[m, n]; y[m, n] = sum[k](a[m, k] * (q[n, k] - 3)) * s[n]"
PLAINLY = "y[m, n] = sum[k](a[m, k] * q[n, k])"


def product(q: str, text: str, m: int, n: int, k: int, kind: str = "bfloat16"):
    """A product with activations and scales of 16 bits."""
    scales = f"s: {kind}[n, k // {text.rpartition('//')[2].partition(']')[0].strip()}]; "
    scales = scales if "s[n, k //" in text else f"s: {kind}[n]; " if "s[n]" in text else ""
    return workload(f"q: {q}[n, k](packed); a: {kind}[m, k]; {scales}{text}", m=m, n=n, k=k)


@deferred
def case(q: str, text: str, sizes: tuple[int, ...], kind="bfloat16", arch="sm_90a", **v) -> Case:
    """The workload of ``sizes`` m, n and k, and the kernel of a schedule."""
    w, target = product(q, text, *sizes, kind), cuda_target(arch)
    return w, Space(w, target, [CudaLowBit(w, target)]).lower(
        Schedule("low_bit", tuple((PLAIN | v).items()))
    )


SPREAD = {"warp_columns": 2, "warp_depth": 2, "block_depth": 4, "in_flight": 2}
EARLY = {"scales": "early"}
CASES = {
    "1 bit": case("uint1", GROUPS.format(z=1, g=64), (9, 40, 192), tile_rows=16),
    "2 bits": case("int2", SCALED, (3, 33, 136), warp_columns=2, block_depth=4),
    "3 bits": case("uint3", GROUPS.format(z=4, g=32), (20, 16, 128), tile_rows=24, **EARLY),
    "4 bits": case("uint4", GROUPS.format(z=8, g=128), (17, 40, 768), tile_rows=24, **SPREAD),
    "5 bits": case("int5", SCALED, (1, 50, 328), warp_tiles=2, splits=2, block_depth=4),
    "6 bits": case("uint6", GROUPS.format(z=31, g=16), (12, 17, 144), "float16", tile_rows=16),
    "7 bits": case("uint7", SCALED.replace("3", "0.5"), (2, 40, 88), warp_tiles=2),
    "8 bits": case("uint8", GROUPS.format(z=128, g=128), (33, 35, 256), tile_rows=40, **EARLY),
    "8 bits, halves": case("int8", SCALED, (5, 20, 64), "float16", "sm_80"),
    "bytes": case("uint4", BYTES.format(g=64), (2, 33, 192), splits=2),
    "float of 4": case("float4_e2m1", FLOATS.format(g=32), (40, 40, 480), tile_rows=40, **SPREAD),
    "float of 5": case("float5_e3m1", PLAINLY, (9, 20, 128), "float16", tile_rows=16),
    "float of 8": case("float8_e4m3fn", FLOATS.format(g=128), (2, 33, 256), **EARLY),
    "powers": case("float4_e2m1", POWERS, (9, 40, 320), tile_rows=16, warp_tiles=2, **EARLY),
    "the other of 8": case("float8_e5m2", SCALED.replace(" - 3", ""), (2, 33, 128), splits=2),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no wait for activations": ("4 bits", r"cp_async_wait<1>", "cp_async_wait<2>"),
    "no barrier after activations": (
        "4 bits",
        r"(cp_async_wait<1>\(\);\s*)tw::sync_block\(\);",
        r"\1",
    ),
    "no barrier behind a chunk": ("4 bits", r"(next = other;\s*)tw::sync_block\(\);", r"\1"),
    "no turns": ("1 bit", r"now = next; next = other;", ""),
    "no barrier before sums": (
        "2 bits",
        r"tw::sync_block\(\);(?=\s*#pragma unroll\s*.*\s*tw::st)",
        "",
    ),
    "rows beyond the last": ("4 bits", r"row < 17", "row < 18"),
    "depth beyond the last": ("2 bits", r"depth < deep", "depth < deep + 8"),
    "the last tile is left out": ("5 bits", r"first \+ 3 < 6 \? first \+ 3 : 6", "first + 2"),
    "the next activations": ("4 bits", r"\(k - chunk\)", "(k - chunk ^ 1)"),
    "halves of the rows changed": ("4 bits", r"a\[0\]\[1\] = ", "a[0][0] = "),
    "the scale of the other half": ("4 bits", r"scale0_1, s", "scale0_0, s"),
    "the scale of the neighbouring group": (
        "3 bits",
        r"_scale\((.*?), \(i64\)k \* 64 \+ 32",
        r"_scale(\1, (i64)k * 64",
    ),
    "scales before a group ends": (
        "4 bits",
        r"float t\[1\]\[3\]\[4\] = \{\};",
        "float t[1][3][4] = {{{1}}};",
    ),
    "the power of the group before": ("powers", r"\(i64\)k \* 64 \+ 32", "(i64)k * 64"),
    "another zero point": ("4 bits", r"0xc308c308u", "0xc309c309u"),
    "the zero point of the other half": ("bytes", r", z0_1\)", ", z0_0)"),
    "the sign": ("2 bits", r"\^ 0x43024302u", "^ 0x43004300u"),
    "a code's bits across words": ("3 bits", r"& 0x20002u", "& 0x40004u"),
    "a half of a word late": ("8 bits", r"w0 >> 8", "w0 >> 7"),
    "the highest bit": ("8 bits", r"0xc380c380u", "0xc300c300u"),
    "a float's exponent": ("float of 4", r"0x7e807e80u", "0x7f007f00u"),
    "sums of another row": ("4 bits", r"lane % 4 \* 2 \+ 1", "lane % 4 * 2"),
    "a part is left out": ("bytes", r"other < 2;", "other < 1;"),
    "a warp is left out": ("4 bits", r"w < 2; w\+\+", "w < 1; w++"),
    "a neighbour's tile": ("5 bits", r"\* 4 \+ tile\)", "* 3 + tile)"),
}


class TestMatrixKernels(KernelContract):
    cases, bugs = CASES, BUGS


def one_hot(names, kind):
    """One-hot activations for codes of every value that is finite."""
    n, k = 20, 72
    for name in names:
        values = dtype(name).values
        finite = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
        codes = np.random.default_rng(0).permutation(np.resize(finite, n * k)).reshape(n, k)
        given = case(name, PLAINLY, (k, n, k), kind, tile_rows=24, splits=2, warp_columns=2)
        yield given, codes, np.eye(k), values[codes].T


def first_term(names, kind):
    """Activations that are zero but for the first term, whose codes are all that there are."""
    for name in names:
        values = dtype(name).values
        codes = np.zeros((len(values), 64), np.uint8)
        codes[:, 0] = np.arange(len(values))
        given = case(name, PLAINLY, (1, len(values), 64), kind)
        yield given, codes, np.eye(1, 64), values[np.newaxis]


def check_exact(emulator, given) -> None:
    """Each kernel's output is exactly what is said."""
    given = [((w, kernel), *rest) for (w, kernel), *rest in given]
    emulator.build([kernel for (_, kernel), *_ in given])
    for (w, kernel), codes, activations, wanted in given:
        q, a = (w.program.operand[name] for name in "qa")
        arrays = {"q": tilewright.pack(codes, q.dtype), "a": activations.astype(a.element.numpy)}
        found = emulator.run(kernel, arrays)
        assert found.error_kind is None, found.error_text
        np.testing.assert_array_equal(found.outputs["y"], wanted.astype(np.float32))


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
    for multiply, rows in (("mma", 8), ("fma", 1)):
        _, kernel = case("float4_e2m1", text, (1, 255, 128), multiply=multiply, tile_rows=rows)
        assert "exp2" not in kernel.source.body
        found = emulator.run(kernel, arrays).outputs["y"]
        np.testing.assert_array_equal(found, np.exp2(np.arange(255.0) - 127)[np.newaxis])


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
    space = space_for(w, SM_80)
    points = {
        way: Schedule("low_bit", tuple((PLAIN | {"scales": way}).items()))
        for way in ("late", "early")
    }
    assert [way for way, each in points.items() if space.why_not(each) is None] == ways
    codes = np.random.default_rng(0).integers(0, 256, (16, 128)).astype(np.uint8)
    codes[:, 0] = 128
    given = inputs.draw(w.program, 0)
    sizes = {"float16": (1e-7, 1e-5, 400.0), "float8_e4m3fn": (0.01, 100.0)}.get(
        scales, (3e-8, 1e-5, 1e5, 1e30)
    )
    for way in ways:
        kernel = space.lower(points[way])
        for size in sizes:
            s = np.abs(given["s"] * size) + np.asarray(size, given["s"].dtype)
            arrays = {"q": tilewright.pack(codes, "uint8"), "a": given["a"], "s": s}
            found = emulator.run(kernel, arrays).outputs["y"]
            assert agrees(found, *allowed(w.program, arrays)["y"]).all(), (way, size)


BRAIN = tuple(name for name in ALL_NAMES if name != "float8_e8m0")
HALVES = tuple(name for name in BRAIN if name != "float8_e3m4")


def test_each_weight_comes_back(emulator):
    names = [name for name in NAMES if name in BRAIN]
    check_exact(emulator, [*one_hot(names, "bfloat16"), *first_term(names, "bfloat16")])


@pytest.mark.slow
@pytest.mark.parametrize(("names", "kind"), [(BRAIN, "bfloat16"), (HALVES, "float16")])
def test_each_weight_of_each_width_comes_back(emulator, names, kind):
    check_exact(emulator, [*one_hot(names, kind), *first_term(names, kind)])


FORMS = [
    ("uint4", GROUPS.format(z=8, g=128), (70, 50, 256), "bfloat16"),
    ("uint3", BYTES.format(g=16), (9, 40, 144), "bfloat16"),
    ("int6", SCALED, (33, 20, 192), "float16"),
    ("float4_e2m1", FLOATS.format(g=32), (16, 33, 320), "bfloat16"),
    ("float8_e4m3fn", FLOATS.format(g=64), (12, 64, 64), "float16"),
]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("q", "text", "sizes", "kind"), FORMS)
def test_more_schedules_agree_with_the_reference(q, text, sizes, kind, arch):
    space = space_for(product(q, text, *sizes, kind), cuda_target(arch))
    drawn = [each for each in draw(space, 80, 0) if each.values["multiply"] == "mma"]
    verdicts = list(emulate(space, drawn[:8]))
    assert len(verdicts) > 1
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


def test_every_rule_speaks():
    sizes = [("uint4", GROUPS.format(z=8, g=128), 16, 40, 8192), ("uint8", SCALED, 40, 4096, 264)]
    works = [product(*each) for each in sizes]
    works.append(product("int3", GROUPS.format(z=1, g=32), 9, 64, 160))
    works.append(scaled("float16", "float32"))
    assert not silent_rules([Space(w, SM_80, [CudaLowBit(w, SM_80)]) for w in works], 200)


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
    w = product("uint4", text, 8, 32, 128, kind)
    (template,) = space_for(w, SM_80).templates.values()
    assert LowBitRing.why_not(w, SM_80)
    assert "multiply" not in {decision.name for decision in template.decisions}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("q", ["uint4", "int3", "float4_e2m1", "uint8"])
def test_nothing_spills_and_tensor_cores_multiply(arch, q):
    more = {"tile_rows": 64, "warp_columns": 4, "in_flight": 2, "block_depth": 4, "warp_tiles": 2}
    given = case(q, GROUPS.format(z=2, g=128), (64, 512, 2048), "bfloat16", arch, **more)
    found = instructions(arch, given)
    assert found["LDL"] == found["STL"] == 0
    assert found["HMMA"] >= 8 * 4 * 2
    assert found["LDSM"] >= 4 * 4

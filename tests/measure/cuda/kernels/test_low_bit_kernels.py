"""Kernels with packed codes on the emulator: every width and form, planted bugs, machine code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tilewright
from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.blocks.test_block_kernels import instructions
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.cpu.low_bit.test_template import ALL_NAMES, FORMS, MORE_FORMS, NAMES, made
from tilewright.measure.cuda.emulator import Emulator
from tilewright.scheduler.verification import draw, emulate
from tilewright.spaces.cuda.low_bit.template import CudaLowBit
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import silent_rules

PLAIN: dict[str, int | str] = {
    "tile_rows": 1,
    "warp_tiles": 1,
    "warp_columns": 1,
    "warp_depth": 1,
    "in_flight": 1,
    "block_depth": 1,
    "splits": 1,
    "scales": "late",
}
GROUPS = "y[m, n] = sum[k](a[m, k] * ((q[n, k] - z[n, k // {g}]) * s[n, k // {g}]))"
TABLE = "y[m, n] = sum[k](a[m, k] * t[q[n, k]] * s[n, k // {g}])"
SCALED = "y[m, n] = sum[k](a[m, k] * (q[n, k] - 3)) * s[n]"
EXPERTS = (
    "q: uint4[3, n, k](packed); e: int32[t](index < 3); "
    "y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 8) * s[e[t], n, k // 64])"
)
HALF = "a: float16[m, k]; s: float16[n, k // 32]; y: float16[m, n]; "
BRAIN = "a: bfloat16[m, k]; y: bfloat16[m, n]; "


@deferred
def case(q: str, text: str, sizes: tuple[int, ...], arch: str = "sm_90a", **values) -> Case:
    """The workload of ``sizes`` m, n and k, and the kernel of a schedule."""
    codes = f"q: {q}[n, k](packed); " if q else ""
    w = workload(codes + text, **dict(zip("tnk" if not q else "mnk", sizes, strict=True)))
    target = cuda_target(arch)
    space = Space(w, target, [CudaLowBit(w, target)])
    return w, space.lower(Schedule("low_bit", tuple((PLAIN | values).items())))


SPREAD = {"warp_columns": 2, "warp_depth": 2, "block_depth": 4, "in_flight": 2}
CASES = {
    "1 bit": case("uint1", GROUPS.format(g=64), (1, 40, 192), warp_depth=2, block_depth=4),
    "2 bits": case("int2", SCALED, (3, 33, 136), tile_rows=3, warp_columns=2),
    "3 bits": case("uint3", GROUPS.format(g=32), (2, 16, 96), tile_rows=2, scales="early"),
    "4 bits": case("uint4", GROUPS.format(g=128), (2, 40, 512), tile_rows=2, **SPREAD),
    "5 bits": case("int5", SCALED, (1, 50, 328), warp_tiles=2, splits=2, block_depth=4),
    "6 bits": case("uint6", TABLE.format(g=16), (2, 17, 144), warp_columns=2, scales="early"),
    "7 bits": case("uint7", SCALED.replace("3", "0.5"), (2, 40, 88), tile_rows=2, warp_tiles=2),
    "8 bits": case("uint8", GROUPS.format(g=8), (9, 35, 136), tile_rows=5),
    "bytes": case("uint4", f"z: uint8[n, k // 64]; {GROUPS.format(g=64)}", (2, 33, 192)),
    "float of 4": case("float4_e2m1", SCALED.replace(" - 3", ""), (2, 40, 72), tile_rows=2),
    "float of 6": case(
        "float6_e3m2", GROUPS.format(g=8), (2, 40, 72), warp_tiles=2, scales="early"
    ),
    "float of 8": case("float8_e4m3fn", BRAIN + SCALED, (2, 33, 128), splits=2),
    "halves": case("uint4", HALF + TABLE.format(g=32), (3, 32, 256), "sm_80", tile_rows=3),
    "a table": case("uint4", TABLE.format(g=64), (1, 33, 512), splits=4, block_depth=1),
    "experts": case("", EXPERTS, (5, 33, 192), block_depth=4, warp_depth=2),
}

# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "no barrier after activations": ("4 bits", r"(?s)(value\);\s*\}\s*)tw::sync_block\(\);", r"\1"),
    "no barrier before activations": ("halves", r"tw::sync_block\(\);", ""),
    "no barrier before sums": ("4 bits", r"tw::sync_block\(\);(?=\s*#pragma)", ""),
    "no barrier behind sums": ("4 bits", r"tw::sync_block\(\);(?=\s*for[^{]*\{\s*float total)", ""),
    "a lane is left out": ("4 bits", r"shuffle_xor\(sum, 1\)", "shuffle_xor(sum, 2)"),
    "a warp is left out": ("4 bits", r"w < 2; w\+\+", "w < 1; w++"),
    "a warp's tiles twice": ("4 bits", r"chunk \+ part", "chunk"),
    "one tile of two": ("4 bits", r"f < 2; f\+\+", "f < 1; f++"),
    "the scale of the neighbouring group": (
        "4 bits",
        r"_scale\((.*?), \(i64\)k \*",
        r"_scale(\1, (i64)(k ^ 2) *",
    ),
    "the scale of the other half": ("4 bits", r"scale0_1, s\[", "scale0_0, s["),
    "the scale of another column": ("1 bit", r"(_scale\(x0[^;]*?lane) / 4", r"\1 / 8"),
    "the zero point twice": ("4 bits", r" - zero0_0;", " - zero0_0 - zero0_0;"),
    "the zero point left out": ("4 bits", r" - zero0_1;", ";"),
    "the bits of codes turned": ("4 bits", r"w\[f\]\[0\]\[0\];", "~w[f][0][0];"),
    "a code across words": (
        "3 bits",
        r"\(\(\((w\d+) >> 15\) & 1\) << 1\)",
        r"(((\1 >> 15) & 1) << 2)",
    ),
    "the sign": ("2 bits", r"0x4b000002u", "0x4b000000u"),
    "the sign of a float": ("float of 4", r" << 28", " << 27"),
    "subnormal numbers": ("float of 6", r"size < 4u", "size < 3u"),
    "a whole tile as the last": ("2 bits", r"if \(k < 2\)", "if (k < 1)"),
    "the last tile is left out": ("5 bits", r"first \+ 3 < 6 \? first \+ 3 : 6", "first + 2"),
    "the neighbour's tile": ("5 bits", r"\* 4 \+ tile\)", "* 3 + tile)"),
    "the matrix of another expert": (
        "experts",
        r"tw_whole_within\((.*?), 3\)",
        r"(tw_whole_within(\1, 3) + 1) % 3",
    ),
    "the ticket is kept": ("a table", r"tw::store_global\(ticket, 0u\)", ""),
    "a part is left out": ("a table", r"other < 4;", "other < 3;"),
    "the entry beside": ("a table", r"table \+ 4 \* n", "table + 4 * (n ^ 1)"),
}


class TestLowBitKernels(KernelContract):
    cases, bugs = CASES, BUGS


def check_each_weight(emulator: Emulator, names: Sequence[str]) -> None:
    """One-hot activations give each weight exactly, every code among them."""
    n, k, cases, wanted = 20, 72, [], []
    for name in names:
        values = dtype(name).values
        finite = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
        codes = np.random.default_rng(0).permutation(np.resize(finite, n * k)).reshape(n, k)
        assert set(codes.flat) == set(finite)
        inputs = {"q": tilewright.pack(codes, name), "a": np.eye(k, dtype=np.float32)}
        text = "y[m, n] = sum[k](a[m, k] * q[n, k])"
        given = case(name, text, (k, n, k), tile_rows=8, splits=2, warp_columns=2)
        cases.append((given, inputs))
        wanted.append(values[codes].T.astype(np.float32))
    emulator.build([kernel for (_, kernel), _ in cases])
    for ((_, kernel), inputs), weights in zip(cases, wanted, strict=True):
        found = emulator.run(kernel, inputs)
        assert found.error_kind is None, found.error_text
        np.testing.assert_array_equal(found.outputs["y"], weights)


def test_each_weight_comes_back(emulator):
    check_each_weight(emulator, NAMES)


@pytest.mark.slow
def test_each_weight_of_each_width_comes_back(emulator):
    check_each_weight(emulator, ALL_NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("q", "text", "sizes"), [form for form in FORMS + MORE_FORMS if "exp2" not in form[1]]
)
def test_more_schedules_agree_with_the_reference(q, text, sizes, arch):
    space = space_for(made(q, text, sizes), cuda_target(arch))
    verdicts = list(emulate(space, draw(space, 8, 0)))
    assert all(verdict.right for verdict in verdicts), [each.error_text for each in verdicts]


def test_every_rule_speaks():
    forms = [
        ("uint4", GROUPS.format(g=128), {"m": 8, "n": 40, "k": 8192}),
        ("uint8", SCALED, {"m": 16, "n": 4096, "k": 256}),
    ]
    works = [workload(f"q: {q}[n, k](packed); {text}", **sizes) for q, text, sizes in forms]
    assert not silent_rules([space_for(w, cuda_target("sm_80")) for w in works], 200)


@pytest.mark.parametrize("last", ["y[n] = u[15 - n]", "y[m] = u[m] * c[m]"])
def test_sums_that_are_read_elsewhere_are_refused(last):
    text = f"q: uint4[16, k](packed); u[n] = sum[k](a[k] * q[n, k]); {last}"
    w = workload(text, k=64, n=16, **({"m": 16} if "m" in last else {}))
    with pytest.raises(InputError, match=r"y reads the sum as sums\[.*\]; allowed: sums\[n\]"):
        space_for(w, cuda_target("sm_90a"))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("q", ["uint4", "int3", "float4_e2m1"])
def test_words_are_read_as_wide_as_they_lie_and_nothing_spills(arch, q):
    more = {"tile_rows": 4, "warp_depth": 4, "in_flight": 2, "block_depth": 16}
    text = "a: bfloat16[m, k]; s: bfloat16[n, k // 128]; y: bfloat16[m, n]; "
    text += "y[m, n] = sum[k](a[m, k] * ((q[n, k] - 2) * s[n, k // 128]))"
    found = instructions(arch, case(q, text, (4, 512, 2048), arch, **more))
    assert found["LDG.128"] == {"uint4": 2, "float4_e2m1": 2, "int3": 0}[q]
    assert found["LDG.64"] == {"uint4": 0, "float4_e2m1": 0, "int3": 2}[q]
    assert found["LDL"] == found["STL"] == 0

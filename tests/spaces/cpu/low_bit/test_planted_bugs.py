"""Bugs planted in the C of products with packed codes are found."""

from __future__ import annotations

import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

LATE = {  # of 4 bits in groups: what is replaced in the source, by what
    "scale of the neighbouring group": (r"scales \+ \(g\)", "scales + (g ^ 1)"),
    "scale of the neighbouring column": (r"(scales \+ \(g\) \* 16 \+ band \* \d+)", r"\1 + 1"),
    "zero point of the neighbouring group": (r"zeros \+ \(g\)", "zeros + (g ^ 1)"),
    "zero point twice": (r" - zero0;", " - zero0 - zero0;"),
    "zero point left out": (r" - zero1;", ";"),
    "scale before the group ends": (r"k < \(g \+ 1\) \* 2", "k < (g + 1) * 2 - 1"),
    "halves of the rows swapped": (r"half \* 8", "(1 - half) * 8"),
    "swapped codes of a pair": (r"i % 4 \* 2 \+ i / 4", "i % 4 * 2 + 1 - i / 4"),
    "step of the depth late": (r"e \+ 8\)", "e + 16)"),
    "block of codes of the neighbour": (r"tile \* 512, x", "(tile ^ 1) * 512, x"),
    "last block left out": (r"k < (\d+); k \+= (\d+)", r"k < \1 - \2; k += \2"),
    "one lane of four": (r"\+ \(own\[2\] \+ own\[3\]\)", "+ own[2]"),
    "second row as the first": (r"own \+ row \* 64", "own"),
}
ODD = {  # of 3 bits, signed
    "sign bit": (r"(tw_entries1\(table0, \(w0)\)", r"\1 & 3)"),
    "code across words": (r"\(\(\(w1 >> 15\) & 1\) << 1\)", "(((w1 >> 15) & 1) << 2)"),
    "half of a word late": (r"w2 >> 16", "w2"),
    "bit of the neighbour": (r"w1 >> 31 << 1", "w1 >> 30 << 1"),
}
COMPUTED = {  # of 3 bits, signed, whose values are not looked up
    "mask of the neighbour": (r"\(w1 & 0x1c0\)", "(w1 & 0x380)"),
    "power of two of the neighbour": (r"p\+17f", "p+16f"),
    "half of a word late": (r"\(w2 >> 16\)", "w2"),
    "sign bit left out": (r" \^ 0x4b000004", " ^ 0x4b000000"),
}
FIELDS = {  # of 8 bits, of floating point
    "sign": (r"\(c0, x0", "(-c0, x0"),
    "byte of the neighbour": (r"w1 >> 8", "w1"),
}


EXPERTS = {  # of 3 bits, of several matrices
    "codes of the neighbouring expert": (r"(tw_whole_within\()(.*, 3\) \* )", r"\1 1 - \2"),
    "codes of the first expert": (r"tw_whole_within\((.*), 3\) \* ", "0 * "),
}


SEGMENTS = {  # of 3 bits, four rows of a segment at a time
    "rows beyond the segment": (r"\) break;", ") run += 0;"),
    "weights of another expert": (r"(_tile4\(call, q \+ \w+\()(.*?), 3\)", r"\1 1 - \2, 3)"),
    "the scale of the first expert": (r"(_tile4\(.*?), row, tile", r"\1, 0, tile"),
    "a row is left out": (r"row \+= 2;", "row += 3;"),
    "a row twice": (r"row \+= 4;", "row += 3; own[0] = 0;"),
}


def target() -> CpuTarget:
    found = this_cpu()
    if found.isa != "avx512":
        pytest.skip("the names of words are those of AVX-512")
    return found


@pytest.mark.parametrize(
    ("bugs", "dtype", "decoding", "text"),
    [
        (
            LATE,
            "uint4",
            "shuffled",
            "y[m, n] = sum[k](a[m, k] * (q[n, k] - z[n, k // 128]) * s[n, k // 128])",
        ),
        (ODD, "int3", "shuffled", "y[m, n] = sum[k](a[m, k] * q[n, k])"),
        (COMPUTED, "int3", "computed", "y[m, n] = sum[k](a[m, k] * q[n, k])"),
        (FIELDS, "float8_e4m3fn", "computed", "y[m, n] = sum[k](a[m, k] * q[n, k])"),
    ],
)
def test_planted_bugs_are_found(bugs, dtype, decoding, text, tmp_path):
    w = workload(f"q: {dtype}[n, k](packed); {text}", m=2, n=32, k=512)
    space = space_for(w, target())
    wanted = {"tile_rows": 1, "block_depth": 4, "scales": "late", "decoding": decoding}
    schedule = next(s for s in space.enumerate() if wanted.items() <= s.values.items())
    check_bugs_are_found(space.lower(schedule), bugs, w, target(), tmp_path, count=0)


def test_bugs_of_experts_are_found(tmp_path):
    text = "q: uint3[3, n, k](packed); e: int32[t](index < 3); "
    w = workload(text + "y[t, n] = sum[k](a[t, k] * q[e[t], n, k])", t=6, n=16, k=64)
    space = space_for(w, target())
    check_bugs_are_found(space.lower(next(iter(space.enumerate()))), EXPERTS, w, target(), tmp_path)


def test_bugs_of_segments_are_found(tmp_path):
    text = "q: uint3[3, n, k](packed); e: int32[t](sorted < 3); "
    text += "y[t, n] = sum[k](a[t, k] * q[e[t], n, k] * s[e[t], n, k // 64])"
    w = workload(text, t=19, n=16, k=128)
    space = space_for(w, target())
    schedule = next(s for s in space.enumerate() if s.values["tile_rows"] == 4)
    check_bugs_are_found(space.lower(schedule), SEGMENTS, w, target(), tmp_path)

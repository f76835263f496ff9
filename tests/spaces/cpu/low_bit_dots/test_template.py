"""Kernels of int8 activations and packed codes: every width, form, tail, and instruction."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.spaces.cpu.low_bit.test_template import made, target_of
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    compile_kernels,
    complaint,
    outcome,
    sampled,
)
from tilewright.spaces.cpu.low_bit_dots import LowBitDots
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.quads import quads
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload

X = "x: int8[m, k]; "
PLAIN = X + "y[m, n] = sum[k](x[m, k] * q[n, k])"
COLUMNS = f"z: int8[n]; {X}y[m, n] = sum[k](x[m, k] * (q[n, k] - z[n]))"
SCALED = X + "y[m, n] = sum[k](x[m, k] * (q[n, k] - 8) * s[k // {g}, n]) * d[m]"
GROUPS = (
    X + "z: uint8[n, k // {g}]; y[m, n] = sum[k](x[m, k] * "
    "((q[n, k] - z[n, k // {g}]) * s[n, k // {g}])) * d[m]"
)
FORMS = [  # dtype, text, sizes
    ("uint4", SCALED.format(g=128), {"m": 1, "n": 40, "k": 256}),
    ("int3", GROUPS.format(g=64), {"m": 3, "n": 33, "k": 192}),
    ("uint5", GROUPS.format(g=32), {"m": 2, "n": 17, "k": 160}),
    ("uint8", SCALED.format(g=16), {"m": 5, "n": 16, "k": 144}),
    ("int8", PLAIN, {"m": 7, "n": 48, "k": 4232}),
    ("uint1", COLUMNS, {"m": 2, "n": 20, "k": 72}),
    ("int2", SCALED.format(g=64), {"m": 1, "n": 16, "k": 64}),
    (
        "uint6",
        "x: int8[t, k]; q: uint6[3, n, k](packed); e: int32[t](index < 3); "
        "y[t, n] = relu(sum[k](x[t, k] * (q[e[t], n, k] - 8) * s[e[t], n, k // 64]))",
        {"t": 5, "n": 33, "k": 192},
    ),
]  # fmt: skip
WITHOUT = ("-mno-avx512vnni", "-mno-avxvnni")
"""Leaves the dot products of bytes out, so that pairs are multiplied."""
VECTORS = (("", ()), ("avx2", ()), ("avx2", WITHOUT), ("generic", ()))


def dots(w: Workload, target: Target) -> Space:
    assert LowBitDots.why_not(w, target) is None
    return Space(w, target, [LowBitDots(w, target)])


def asked(q: str, text: str, sizes: dict[str, int]) -> Workload:
    return made(q, text, sizes) if "packed" not in text else tilewright.workload(text, **sizes)


@pytest.mark.parametrize(("isa", "without"), VECTORS)
@pytest.mark.parametrize(("q", "text", "sizes"), FORMS)
def test_random_schedules_agree_with_the_reference(q, text, sizes, isa, without, tmp_path):
    target = target_of(isa, 2)
    w = asked(q, text, sizes)
    kernels = sampled(dots(w, target), 2, len(isa))
    library = compile_kernels(kernels, target, tmp_path, "-O1", *without)
    assert not [found for k in kernels if (found := complaint(k, library, w, 0))]


def test_rows_of_a_segment_share_the_codes_of_their_expert(tmp_path):
    w = workload(
        "q: uint4[3, n, k](packed); e: int32[t](sorted < 3); x: int8[t, k]; "
        "y[t, n] = sum[k](x[t, k] * (q[e[t], n, k] - 8) * s[e[t], k // 64, n]) * d[t]",
        t=17,
        n=33,
        k=192,
    )
    target = target_of("", 2)
    space = dots(w, target)
    found = {schedule.values["tile_rows"]: schedule for schedule in space.enumerate()}
    assert set(found) >= {1, 2}
    kernels = [space.lower(schedule) for schedule in found.values()]
    library = compile_kernels(kernels, target, tmp_path, "-O1")
    assert not list(filter(None, (complaint(kernel, library, w, 0) for kernel in kernels)))


@pytest.mark.parametrize(("isa", "without"), VECTORS)
@pytest.mark.parametrize("q", ["uint1", "int4", "uint7", "uint8", "int8"])
def test_the_largest_sums_are_exact(q, isa, without, tmp_path):
    m, n, k = 3, 16, 512
    w, target, values = made(q, PLAIN, {"m": m, "n": n, "k": k}), target_of(isa), dtype(q).values
    kernel = sampled(dots(w, target), 1)[0]
    library = compile_kernels([kernel], target, tmp_path, "-O1", *without)
    x = np.stack([np.full(k, -128), np.full(k, 127), np.resize([127, -128], k)]).astype("i1")
    codes = np.stack([np.full(k, values.argmin()), np.full(k, values.argmax())] * (n // 2))
    inputs = {"x": x, "q": tilewright.pack(codes.astype("u1"), q)}
    problem, found = outcome(kernel, library, inputs)
    assert not problem
    np.testing.assert_array_equal(found["y"], x.astype("f8") @ values[codes].T)


BUGS = {
    "scale of the neighbouring group": (r"scales \+ \(g\)", "scales + (g ^ 1)"),
    "scale of the neighbouring column": (r"(scales \+ \(g\) \* 16 \+ band \* \d+)", r"\1 + 1"),
    "zero point of the neighbouring group": (r"x \+ g \* (\d+) \+ 64", r"x + (g ^ 1) * \1 + 64"),
    "zero point left out": (r"vi s0_0_0 = \(vi\)[^;]*;", "vi s0_0_0 = {0};"),
    "latest activation alone": (r"\] \+= value", "] = value"),
    "scale before the group ends": (r"k < \(g \+ 1\) \* 2", "k < (g + 1) * 2 - 1"),
    "swapped nibbles": (r"c0 = \(\(w0 >> 4\) & 0xf0f0f0f\)", "c0 = (w0 & 0xf0f0f0f)"),
    "byte of the neighbour": (r"places\[\] = \{0, 32, 1, 33", "places[] = {0, 33, 1, 32"),
    "quad late": (r"\(e \+ 16\)", "(e + 32)"),
    "row of the neighbour": (r"ordered = (.*) \+ row \*", r"ordered = \1 + (row ^ 1) *"),
    "last block left out": (r"k < (\d+); k \+= (\d+)", r"k < \1 - \2; k += \2"),
    "sums of one chain": (r"s0_0_0 \+ s0_0_1", "s0_0_0"),
}


def test_planted_bugs_are_found(tmp_path):
    target = target_of()
    if target.isa != "avx512":
        pytest.skip("the names of words are those of AVX-512")
    w = made("uint4", SCALED.format(g=128), {"m": 2, "n": 32, "k": 512})
    space = dots(w, target)
    wanted = {"tile_rows": 1, "block_depth": 4}
    schedule = next(s for s in space.enumerate() if wanted.items() <= s.values.items())
    check_bugs_are_found(space.lower(schedule), BUGS, w, target, tmp_path, count=0)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("steps", [2, 4, 8])
def test_quads_have_each_step_once_and_stay_in_their_part(bits, steps):
    found = quads(bits, steps)
    assert sorted(step for quad in found for step in quad) == list(range(8))
    assert all(first // steps == second // steps for first, second in found)


@pytest.mark.parametrize(
    ("q", "text", "said"),
    [
        ("uint4", "y[m, n] = sum[k](a[m, k] * q[n, k])", "a[m, k] is multiplied by codes; needs"),
        ("float4_e2m1", PLAIN, "q has float4_e2m1; needs whole numbers"),
        ("uint4", X + "y[m, n] = sum[k](x[m, k] * t[q[n, k]])", "q has values of a table; needs"),
        ("uint4", X + "y[m, n] = sum[k](x[m, k] * (q[n, k] - 7.5))", "the zero point 7.5; needs a"),
        ("uint4", X + "y[m, n] = sum[k](x[m, k] * (q[n, k] - z[n]))", "the zero point z[n]; needs"),
        ("uint4", SCALED.format(g=8), "groups of 8 along k; allowed: 16 to 131072"),
    ],
)
def test_what_has_no_kernels_is_said(q, text, said):
    found = LowBitDots.why_not(made(q, text, {"m": 2, "n": 16, "k": 64}), made_up_cpu())
    assert str(found).startswith(said)


def test_every_rule_speaks():
    target = target_of(threads=4)
    spaces = [dots(asked(*form), target) for form in FORMS]
    spaces.append(dots(made("uint4", SCALED.format(g=1024), {"m": 8, "n": 16, "k": 4096}), target))
    assert not silent_rules(spaces, 60)

"""Kernels that read packed codes: every width, form, tail and vector."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tilewright
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_sampled, compile_kernels, outcome, sampled
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import inputs
from tilewright.spaces.low_bit.packing import TRAILER
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.testing.template import silent_rules
from tilewright.spaces.workloads.workload import Workload

GROUPS = "y[m, n] = sum[k](a[m, k] * ((q[n, k] - z[n, k // {g}]) * s[n, k // {g}]))"
SCALED = "y[m, n] = sum[k](a[m, k] * (q[n, k] - 8) * s[k // {g}, n])"
TABLE = "y[m, n] = sum[k](a[m, k] * t[q[n, k]] * s[n, k // {g}])"
MXFP4 = "y[m, n] = relu(sum[k](a[m, k] * q[n, k] * exp2(e[n, k // 32] - 127)) + b[n])"
FORMS = [  # dtype, text, sizes
    ("uint4", GROUPS.format(g=128), {"m": 1, "n": 40, "k": 256}),
    ("uint3", GROUPS.format(g=64), {"m": 3, "n": 33, "k": 192}),
    ("uint4", f"s: float16[8, 48]; {SCALED.format(g=128)}", {"m": 7, "n": 48, "k": 1024}),
    ("uint4", TABLE.format(g=16), {"m": 2, "n": 17, "k": 144}),
    ("uint2", f"t: float16[4]; {TABLE.format(g=32)}", {"m": 3, "n": 16, "k": 96}),
    ("float4_e2m1", f"e: uint8[50, 5]; {MXFP4}", {"m": 5, "n": 50, "k": 160}),
    ("int5", "y[n] = sum[k](a[k] * g[k] * q[n, k]) * s[n]", {"n": 37, "k": 2008}),
    ("int2", SCALED.format(g=64), {"m": 1, "n": 16, "k": 64}),
]
MORE_FORMS = [
    ("uint4", f"z: uint8[33, 3]; {GROUPS.format(g=64)}", {"m": 3, "n": 33, "k": 192}),
    ("int6", "z: int8[40]; y[n] = sum[k](a[k] * (q[n, k] - z[n]))", {"n": 40, "k": 88}),
    ("uint7", "y[m, n] = sum[k](a[m, k] * (q[n, k] - 0.5))", {"m": 2, "n": 40, "k": 88}),
    ("uint8", GROUPS.format(g=8), {"m": 17, "n": 70, "k": 1032}),
    ("uint6", TABLE.format(g=32), {"m": 3, "n": 32, "k": 96}),
    (
        "int3",
        "y[b, m, n] = sum[k](a[b, m, k] * (q[n, k] + 3)) * s[n]",
        {"b": 2, "m": 3, "n": 32, "k": 104},
    ),
    (
        "float8_e4m3fn",
        "a: bfloat16[m, k]; y: bfloat16[m, n]; y[m, n] = sum[k](a[m, k] * (q[n, k] - z[n]))",
        {"m": 17, "n": 70, "k": 1024},
    ),
    ("uint2", GROUPS.format(g=512), {"m": 4, "n": 64, "k": 5120}),
    ("float6_e2m3", MXFP4, {"m": 1, "n": 16, "k": 64}),
]  # fmt: skip
NAMES = ("uint1", "uint3", "uint4", "int5", "uint8", "float4_e2m1", "float6_e3m2", "float8_e4m3fn")
ALL_NAMES = (
    *(f"{sign}int{bits}" for sign in ("u", "") for bits in range(1, 9)),
    *("float3_e1m1", "float4_e2m1", "float5_e2m2", "float6_e3m2", "float6_e2m3", "float7_e3m3"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e8m0"),
)
VECTORS = ("", "avx2", "generic")


def made(q: str, text: str, sizes: dict[str, int]) -> Workload:
    return workload(f"q: {q}[n, k](packed); {text}", **sizes)


def target_of(isa: str = "", threads: int = 1) -> CpuTarget:
    """This machine, or one whose vectors are narrower."""
    found = dataclasses.replace(this_cpu(), threads=threads, cores=threads)
    if not isa:
        return found
    if isa == "avx2" and found.isa not in ("avx2", "avx512"):
        pytest.skip("no AVX2 here")
    size = {"avx2": 32, "generic": 16}[isa]
    return dataclasses.replace(
        found, isa=isa, vector_bytes=size, vector_registers=16, bf16_dot=False
    )


@pytest.mark.parametrize(("q", "text", "sizes"), FORMS)
def test_random_schedules_agree_with_the_reference(q, text, sizes, tmp_path):
    check_sampled(space_for(made(q, text, sizes), target_of(threads=2)), 3, 0, tmp_path)


EXPERTS = (
    "q: uint4[3, n, k](packed); e: int32[t]({drawn} < 3); "
    "y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 8) * s[e[t], n, k // 64])"
)


@pytest.mark.parametrize("drawn", ["index", "sorted"])
def test_rows_read_the_codes_of_their_experts(drawn, tmp_path):
    w = workload(EXPERTS.format(drawn=drawn), t=5, n=33, k=192)
    check_sampled(space_for(w, target_of(threads=2)), 2, 0, tmp_path)


def segments_of(rows: int) -> list[np.ndarray]:
    """Tables of rows by three experts: all of one, every boundary, one row each and long ones."""
    found = [np.full(rows, expert) for expert in range(3)]
    found += [np.sort(np.arange(rows) >= end).astype(int) for end in range(1, rows)]
    found += [np.sort(np.arange(rows) % 3), np.minimum(np.arange(rows), 2)]
    return [each.astype(np.int32) for each in found]


@pytest.mark.parametrize("rows", [2, 4, "most"])
def test_segments_of_any_rows_are_cut_into_tiles(rows, tmp_path):
    w, target = workload(EXPERTS.format(drawn="sorted"), t=19, n=33, k=192), target_of(threads=2)
    space = space_for(w, target)
    found = {schedule.values["tile_rows"]: schedule for schedule in space.enumerate()}
    kernel = space.lower(found[max(found) if rows == "most" else rows])
    library = compile_kernels([kernel], target, tmp_path, "-O1")
    drawn = dict(inputs.draw(w.program, 0))
    for table in segments_of(19):
        arrays = drawn | {"e": table}
        given = arrays | {"q": tilewright.pack(arrays["q"], "uint4")}
        problem, found = outcome(kernel, library, given)
        assert not problem
        assert agrees(found["y"], *allowed(w.program, arrays)["y"]).all(), table
    for table in (drawn["e"][::-1], np.full(19, -1, np.int32), np.full(19, 3, np.int32)):
        given = drawn | {"e": np.ascontiguousarray(table)}
        assert not outcome(kernel, library, given | {"q": tilewright.pack(drawn["q"], "uint4")})[0]


def test_only_segments_have_tiles_of_several_rows():
    for drawn in ("index", "sorted"):
        space = space_for(workload(EXPERTS.format(drawn=drawn), t=19, n=33, k=192), target_of())
        most = max(schedule.values["tile_rows"] for schedule in space.enumerate())
        assert (most > 1) == (drawn == "sorted")


@pytest.mark.slow
@pytest.mark.parametrize("isa", VECTORS)
@pytest.mark.parametrize(("q", "text", "sizes"), FORMS + MORE_FORMS)
def test_more_schedules_agree_with_the_reference(q, text, sizes, isa, tmp_path):
    check_sampled(space_for(made(q, text, sizes), target_of(isa, 3)), 9, 1, tmp_path)


def check_each_weight(name: str, isa: str, folder: str) -> None:
    """One-hot activations give each weight exactly, every code among them."""
    n, k, values = 20, 72, dtype(name).values
    w = made(name, "y[m, n] = sum[k](a[m, k] * q[n, k])", {"m": k, "n": n, "k": k})
    target = target_of(isa)
    ways = {s.values["decoding"]: s for s in space_for(w, target).enumerate()}
    kernels = list(map(space_for(w, target).lower, ways.values()))
    library = compile_kernels(kernels, target, folder, "-O1")
    finite = np.flatnonzero(np.isfinite(values)).astype(np.uint8)
    codes = np.resize(np.random.default_rng(0).permutation(np.resize(finite, n * k)), (n, k))
    assert set(codes.flat) == set(finite)
    inputs = {"q": tilewright.pack(codes, name), "a": np.eye(k, dtype=np.float32)}
    for kernel in kernels:
        problem, found = outcome(kernel, library, inputs)
        assert not problem
        np.testing.assert_array_equal(found["y"], values[codes].T.astype(np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_each_weight_comes_back(name, tmp_path):
    check_each_weight(name, "", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("isa", VECTORS)
@pytest.mark.parametrize("name", ALL_NAMES)
def test_each_weight_of_each_width_comes_back(name, isa, tmp_path):
    check_each_weight(name, isa, tmp_path)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0"])
def test_what_is_no_number_stays_so(name, tmp_path):
    values = dtype(name).values
    special = np.flatnonzero(~np.isfinite(values)).astype(np.uint8)
    codes = np.resize(special, (16, 8))
    w = made(name, "y[n] = sum[k](a[k] * q[n, k])", {"n": 16, "k": 8})
    kernel = sampled(space_for(w, target_of()), 8)[0]
    library = compile_kernels([kernel], target_of(), tmp_path, "-O1")
    inputs = {"q": tilewright.pack(codes[:, :1].repeat(8, 1), name), "a": np.ones(8, np.float32)}
    problem, found = outcome(kernel, library, inputs)
    assert not problem
    np.testing.assert_array_equal(found["y"], values[codes[:, 0]])


def test_every_rule_speaks():
    target = dataclasses.replace(made_up_cpu(), threads=4, cores=4, vector_registers=16)
    spaces = [space_for(made(*form), target) for form in FORMS]
    spaces.append(
        space_for(made("uint4", SCALED.format(g=1024), {"m": 8, "n": 16, "k": 4096}), target)
    )
    assert not silent_rules(spaces, 60)


def test_one_template_reads_codes_and_others_say_that_they_do_not():
    w = made(*FORMS[0])
    assert list(space_for(w, made_up_cpu()).templates) == ["low_bit"]
    packed = w.least_bytes - 4 * (256 + 40 + 2 * 2 * 40)
    assert packed == 48 * 256 // 2 + TRAILER


@pytest.mark.parametrize(
    ("text", "sizes", "said"),
    [
        ("y[m, n] = sum[k](a[m, k] * q[n, k])", {"m": 2, "n": 16, "k": 60}, "k is 60; allowed: "),
        ("y[m, n] = sum[k](a[m, k] * exp(q[n, k]))", {"m": 2, "n": 16, "k": 64}, "is multiplied"),
        (SCALED.format(g=12), {"m": 2, "n": 16, "k": 96}, "groups of 12 along k; allowed: mul"),
        (SCALED.format(g=24), {"m": 2, "n": 16, "k": 96}, "groups of 24 along k; allowed: 8, 16"),
        (SCALED.format(g=80), {"m": 2, "n": 16, "k": 96}, "groups of 80 along k; needs groups"),
        ("y[n, k] = q[n, k] + 1", {"n": 16, "k": 64}, "needs one sum of products"),
    ],
)
def test_what_has_no_kernels_is_said(text, sizes, said):
    with pytest.raises(InputError, match=said) as raised:
        space_for(made("uint4", text, sizes), made_up_cpu())
    assert "\n" not in str(raised.value)

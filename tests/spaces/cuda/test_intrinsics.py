"""Each intrinsic has both bodies, a line in the list, and a device body the compiler takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda import intrinsics
from tilewright.spaces.cuda.intrinsics import device_text, families, host_text
from tilewright.spaces.cuda.intrinsics.families import ELEMENT_BITS, Mma, Wgmma, members
from tilewright.spaces.errors import InputError

EVERY = Path(__file__).with_name("every_intrinsic.cuh").read_text()
LIST = (Path(intrinsics.__file__).parent / "functions.md").read_text()
DEFINITION = re.compile(r"TW_INLINE [\w ]+?[ *&](\w+)\(")


def defined(text: str) -> set[str]:
    return set(DEFINITION.findall(text))


def called(text: str) -> set[str]:
    return set(re.findall(r"tw::(\w+)", text))


def test_device_and_host_define_the_same_functions():
    internal = {"from", "half_low"}
    assert defined(device_text("")) - internal == defined(host_text("")) - internal


def test_each_is_compiled_and_documented():
    names = defined(device_text("")) - {"from", "half_low"}
    assert len(names) > 70
    assert names - called(EVERY) == set()
    listed = LIST.replace("x1/x2/x4[_trans]", "").replace("x2/x4[_trans]", "")
    missing = {n for n in names if n not in listed}
    assert {re.sub(r"_(x\d(_trans)?|[345]d)$", "", n) for n in missing} == {
        "ldmatrix",
        "stmatrix",
        "tma_load",
        "tma_multicast",
        "tma_store",
        "tma_add",
    }


def cubin(text: str, architecture: str) -> str:
    compilation = compile_cubin(device_text(text) + text, architecture, 120, lambda: False)
    assert compilation.cubin is not None, compilation.log[:2000]
    return compilation.log


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_89", "sm_90a"])
def test_the_device_bodies_compile(architecture):
    cubin(EVERY.split("// --- sm_90a")[0], architecture)


def test_the_bodies_of_hopper_compile():
    cubin(EVERY, "sm_90a")


def mma_kernel(member: Mma) -> str:
    number = {"f32": "float", "s32": "i32", "f16": "u32"}[member.d]
    return f"""
extern "C" __global__ void use_{member.name}(const u32 *w, {number} *out) {{
  u32 a[{member.a_registers}], b[{member.b_registers}];
  for (u32 &x : a) x = *w++;
  for (u32 &x : b) x = *w++;
  {number} d[{member.d_registers}] = {{}};
  tw::{member.name}(d, a, b);
  for ({number} x : d) *out++ = x;
}}"""


def wgmma_kernel(member: Wgmma) -> str:
    number = {"f32": "float", "s32": "i32", "f16": "u32"}[member.d]
    a = "(u64)w[4]" if member.source == "ss" else "a"
    return f"""
extern "C" __global__ void __launch_bounds__(128, 1)
use_{member.name}(const u32 *w, {number} *out) {{
  u32 a[4];
  for (int i = 0; i < 4; i++) a[i] = w[i];
  {number} d[{member.d_registers}];
  tw::wgmma_fence();
  tw::{member.name}(d, {a}, (u64)w[5], 0);
  tw::wgmma_commit();
  tw::wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < {member.d_registers}; i++) out[i] = d[i];
}}"""


MMAS = [m for m in members() if isinstance(m, Mma)]
WGMMAS = [m for m in members() if isinstance(m, Wgmma)]


def test_every_mma_compiles():
    old = [m for m in MMAS if m.a not in ("e4m3", "e5m2")]
    cubin("".join(map(mma_kernel, old)), "sm_80")
    cubin("".join(map(mma_kernel, MMAS)), "sm_89")
    cubin("".join(map(mma_kernel, MMAS)), "sm_90a")


def test_every_kind_of_wgmma_compiles_without_complaints():
    log = cubin("".join(wgmma_kernel(m) for m in WGMMAS if m.n == 96), "sm_90a")
    assert "C75" not in log


@pytest.mark.slow
@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_size_of_wgmma_compiles(n):
    cubin("".join(wgmma_kernel(m) for m in WGMMAS if m.n == n), "sm_90a")


def test_families_emit_only_what_is_used():
    name = "wgmma_m64n128k32_f32_e4m3_e5m2_rs"
    for text in (device_text(f"tw::{name}(d, a, b, 1);"), host_text(f"tw::{name}(d, a, b, 1);")):
        assert text.count(f"void {name}(") == 1
        assert text.count("void wgmma_m64") == 1


@pytest.mark.parametrize(
    "name",
    [
        "mma_m16n8k32_f32_f16_f16",
        "mma_m16n8k16_f32_f16_bf16",
        "wgmma_m64n12k16_f32_f16_f16_ss",
        "wgmma_m64n264k16_f32_f16_f16_ss",
        "wgmma_m64n40k32_s32_s8_s8_ss",
        "wgmma_m64n64k8_f32_f16_f16_ss",
        "wgmma_m64n64k32_f32_e4m3_e4m3_ss_nt",
        "wgmma_m64n64k16_f32_f16_f16_rs_tn",
    ],
)
def test_instructions_that_do_not_exist_are_refused(name):
    with pytest.raises(InputError, match=name):
        device_text(f"tw::{name}(d, a, b);")


def test_integers_are_multiplied_by_16_columns_more_at_a_time():
    """As the table of wgmma's shapes in the PTX ISA has them: all up to 32, then every 16th."""
    found = {member.n for member in WGMMAS if member.a == "s8"}
    assert found == {8, 16, 24, 32, *range(48, 257, 16)}
    assert {member.n for member in WGMMAS if member.a == "f16"} == set(range(8, 257, 8))


def test_members_are_named_as_they_are_found():
    for member in members():
        assert families.used(f"tw::{member.name}(d") == [member]
        if isinstance(member, Wgmma):
            assert member.k * ELEMENT_BITS[member.a] == 256

"""Chained kernels whose products are multiplied in float8, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.covering import few
from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.chained.chained_cases import (
    CLUSTER,
    HELD,
    LATER,
    PLAIN,
    SPLIT,
    TEAMS,
)
from tests.measure.cuda.kernels.chained.test_chained_deep import PLAIN as DEEP_PLAIN
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import form, made, random_form
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.drawing.draw import one_draw
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_deep.template import ChainedDeep
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

H200, ADA = cuda_target("sm_90a"), cuda_target("sm_89")
E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
SHORT = {"keys": 32, "weight_dtype": E4M3, "rescale": "moved"}
SCALED = (
    "qs: float32[h]; ks: float32[2]; vs: float32[b,2]; y: bfloat16[b,h,i,e]\nwhere j <= i + 60\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * qs[h] * ks[h // 2]) "
    "* v[b,h // 2,j,e]) * vs[b,h // 2]"
)
OF_KEYS = (
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * scale[b,j] * 0.2) "
    "* u[b,j] * v[b,h // 2,j,e])"
)
DECODE = (
    "vs: float32[h]; y: bfloat16[b,h,i,e]\ny[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] "
    "* k[b,h // 2,j,d]) * 0.5) * v[b,h // 2,j,e]) * vs[h]"
)
DEEP = "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * w[j,d]) * 0.3) * v[j,e])"
TRANSPOSED = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,d,j])) * v[b,h,e,j])"
LONG = {"i": 45, "j": 131, "d": 40, "e": 72}
EQUAL = {"b": 1, "i": 101, "j": 101, "d": 40, "e": 72}


@deferred
def case(
    found: Program, values: dict, columns: int = -1, kind: type[CudaChained] = CudaChained
) -> Case:
    """The kernel of a schedule of a program; of as many columns as one may have."""
    work = Workload("program", (), found, "")
    template = kind(work, H200)
    chosen = {**values, "columns": template.decisions[1].values[columns]}
    names = [decision.name for decision in template.decisions]
    return work, template.lower(Schedule(kind.name, tuple((n, chosen[n]) for n in names)))


CASES = {
    "scales of heads": case(made(SCALED, E4M3, **LONG), {**PLAIN, **SHORT}),
    "rows in registers": case(made(SCALED, E4M3, **LONG), {**HELD, **SHORT, "row_fragments": 2}),
    "values in bfloat16": case(made(SCALED, E4M3, **LONG), {**HELD, "weight_dtype": "bfloat16"}),
    "part of the columns": case(made(SCALED, E4M3, **LONG), {**PLAIN, **SHORT}, 0),
    "decode": case(made(DECODE, E4M3, **{**LONG, "i": 1}), {**SPLIT, **SHORT, "warps": 1}),
    "merged later": case(form("log of the sum", E4M3, **LONG), {**LATER, **SHORT}),
    "teams": case(form("causal", E4M3, **EQUAL), {**TEAMS, **SHORT, "splits": 1}),
    "clusters": case(form("rows without a key", E4M3, **EQUAL), {**CLUSTER, **SHORT}),
    "the other float8": case(
        form("window at both ends", E5M2), {**HELD, **SHORT, "weight_dtype": E5M2}
    ),
    "two values": case(form("two values", E4M3), {**PLAIN, **SHORT}),
    "pages": case(form("pages", E4M3), {**PLAIN, **SHORT, "keys": 64}),
    "latent": case(form("latent", E4M3, e=24), {**PLAIN, **SHORT}),
    "scales of keys": case(made(OF_KEYS, E4M3), {**PLAIN, "keys": 32}),
    "deep": case(
        made(DEEP, E4M3, j=137, d=90),
        {**DEEP_PLAIN, **SHORT, "query_storage": "shared", "splits": 3, "merge": "last"},
        kind=ChainedDeep,
    ),
    "deep loss": case(form("loss over a vocabulary", E4M3, d=90), DEEP_PLAIN, kind=ChainedDeep),
    "transposed": case(made(TRANSPOSED, E4M3), {**PLAIN, **SHORT}),
    "no chain": case(form("no chain", E4M3), PLAIN),
    "loss over a vocabulary": case(form("loss over a vocabulary", E4M3), PLAIN),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "columns change places": ("scales of heads", "0x6420", "0x7531"),
    "keys change places": ("scales of heads", "0x6420", "0x4620"),
    "bytes of a pair of columns": ("scales of heads", "0x7531", "0x5431"),
    "keys of the other half": ("scales of heads", r"raw\[2\], raw\[3\]", "raw[0], raw[1]"),
    "weights of other keys": ("scales of heads", r"2 \+ 4\) % 4", "2 + 5) % 4"),
    "weights of the other row": (
        "scales of heads", r"i % 2 \* 2 \+ 0\) % 4", "(1 - i % 2) * 2) % 4",
    ),
    "weights are not raised": ("scales of heads", r" \* 256\.0f", ""),
    "sums stay raised": ("scales of heads", r"(\[h \* 2 \+ 0\]) \*= 0\.00390625f", r"\1 *= 1.0f"),
    "columns stay apart": ("scales of heads", r"= odd0;", "= sums0[f][j][h * 2 + 1];"),
    "columns of 16 bits": (
        "scales of heads", r"(\(column0 \+ )j / 2 \* 16 \+ j % 2 \* 2", r"\1j * 8",
    ),
    "lanes' columns of 16 bits": ("scales of heads", r"lane % 4 \* 4", "lane % 4 * 2"),
    "the scale of keys is ignored": ("scales of heads", r"g1\[r\] = .*;", "g1[r] = 1.0f;"),
    "the scale of a head for all": (
        "scales of heads", r"buffer0 \+ \(p0\[r\]", "buffer0 + (0",
    ),
    "a team stores the columns of the first": ("teams", r"(fer3 .*\(column0 \+ \()team", r"\g<1>0"),
    "the columns of another group": ("merged later", r"(fer3 .*\(column0 \+ \()group", r"\g<1>0"),
    "a part is left out": (
        "decode", r"for \(int part = 0; part < 3", "for (int part = 1; part < 3",
    ),
    "depth of 16 bits": ("rows in registers", r"\(32 \* k0", "(16 * k0"),
}  # fmt: skip


def random_cases(seeds: range) -> list[Case]:
    """A schedule of each random form whose inputs are telling."""
    cases = []
    for seed in seeds:
        work = Workload("program", (), random_form(seed, (E4M3, E5M2)[seed % 2]), "")
        try:
            one_draw(work, 0)
        except InputError:
            continue
        space = Space(work, H200, [CudaChained(work, H200)])
        (row,) = space.sample(np.random.default_rng(seed), 1)
        cases.append((work, space.lower(space.schedule(row))))
    return cases


class TestFloat8(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.parametrize("count", few(3, of=5))
def test_random_forms_agree(emulator, count):
    cases = random_cases(range(count))
    assert len(cases) > count / 2
    check_all_right(emulator, cases)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(100, 300, 50))
def test_many_random_forms_agree(emulator, begin):
    check_all_right(emulator, random_cases(range(begin, begin + 50)))


@pytest.mark.parametrize("target", [ADA, H200], ids=["sm_89", "sm_90a"])
def test_kernels_compile_and_multiply_float8(target):
    for weights in (E4M3, "bfloat16"):
        _, kernel = case(made(SCALED, E4M3, **LONG), {**PLAIN, "keys": 32, "weight_dtype": weights})
        text = kernel.source.text
        assert text.count("tw::mma_m16n8k32_f32_e4m3_e4m3") == 1 + (weights == E4M3)
        found = compile_cubin(device_text(text) + text, target.name, 120, lambda: False)
        assert found.cubin is not None, found.log[:2000]

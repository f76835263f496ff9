"""Chained kernels of TMA and wgmma whose products are multiplied in float8, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.chained.chained_hopper_cases import SMALL, USUAL, space_of
from tests.measure.cuda.kernels.chained.test_float8 import DECODE, E4M3, E5M2, SCALED
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import form, made, random_form
from tilewright.measure.drawing.draw import one_draw
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.workloads.workload import Workload

ONE: dict[str, Value] = {"warpgroups": 1, "ping_pong": 0}
PARTS: dict[str, Value] = {**ONE, "keys": 32, "splits": 4}
WALKING: dict[str, Value] = {
    "tile_scheduler": "tickets",
    "query_buffers": 2,
    "head_group": 4,
    "stages": 3,
}
TURNED = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.2) * v[b,h,e,j])"
MIXED = f"q: {E5M2}[b,h,i,d]; k: {E4M3}[b,h,j,d]; v: {E5M2}[b,h,e,j]\n{TURNED}"
SINKS = form("sinks", E4M3, i=70, d=32)
LONG = {"i": 75, "j": 131, "d": 48, "e": 72}
FEW = {**LONG, "b": 1, "h": 2, "i": 64}


@deferred
def case(found: Program, **changes: Value) -> Case:
    """The kernel of the usual schedule with some decisions changed."""
    work = Workload("program", (), found, "")
    values = {**USUAL, "rescale": "moved", **changes}
    return work, space_of(work).lower(Schedule("chained_hopper", tuple(values.items())))


def of_form(name: str, dtype: str = E4M3, **changes: Value) -> Case:
    """One of the usual forms, by a single warpgroup."""
    return case(form(name, dtype, i=70, d=32), **{**ONE, "keys": 32, **changes})


CASES = {
    "scales of heads": case(made(SCALED, E4M3, **LONG)),
    "rows in registers": case(
        made(SCALED, E4M3, **{**LONG, "d": 112}), keys=96, query_storage="registers"
    ),
    "in turn": case(
        made(SCALED, E4M3, **LONG), overlap=0, chain_overlap=0, keys=96, rescale="always"
    ),
    "tickets": case(made(SCALED, E4M3, **{**LONG, "i": 150}), skip_per_warpgroup=1, **WALKING),
    "two panels of columns": case(made(SCALED, E5M2, **{**LONG, "e": 136}), keys=96),
    "the other float8": of_form("window at both ends", E5M2),
    "keys along memory": case(made(TURNED, E4M3, b=1, h=3, i=70, j=67, d=32, e=21), **ONE, keys=32),
    "two dtypes": case(made(MIXED, E4M3, i=70, j=67, d=32), **ONE),
    "keys in parts": case(made(DECODE, E4M3, **FEW), **PARTS),
    "parts for a second kernel": case(
        form("log of the sum", E4M3, b=1, h=2, i=64, j=97, d=32),
        **ONE,
        keys=32,
        splits=2,
        merge="kernel",
    ),
    "a second kernel that begins early": case(
        made(DECODE, E4M3, **FEW), **{**PARTS, "merge": "early"}
    ),
    "parts for a cluster": case(
        made(DECODE, E4M3, **FEW), **{**PARTS, "splits": 2, "merge": "cluster", "stages": 4}
    ),
    "rows without a key": of_form("rows without a key"),
}
FURTHER = {
    "prefix lengths": of_form("prefix lengths"),
    "documents": of_form("documents"),
    "bias": of_form("bias"),
    "alibi": of_form("alibi", chain_overlap=2),
    "softcap": of_form("softcap", E5M2),
    "sinks": case(SINKS, **ONE, keys=64),
    "latent": of_form("latent"),
    "heads behind tokens": of_form("heads behind tokens"),
    "other order": of_form("other order"),
    "heads stacked as rows": case(made(DECODE, E4M3, **{**LONG, "i": 32}), **ONE),
    "three warpgroups": case(made(SCALED, E4M3, **{**LONG, "i": 150}), warpgroups=3, keys=64),
    "walking": case(
        made(SCALED, E4M3, **{**LONG, "i": 150}),
        tile_scheduler="persistent",
        query_buffers=2,
        head_group=2,
    ),
    "one tile of keys": case(made(SCALED, E4M3, **{**LONG, "j": 115}), keys=128),
    "few keys": case(form("grouped heads", E4M3, i=70, j=13, d=32), **ONE, keys=32),
}
LOOP = r"(i32 j = end_tile - 1;[\s\S]*?for \(j--[\s\S]*?)"
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "keys change places": ("scales of heads", r"n % 2 \* 1 \+ n / 2 \* 8", "n % 2 * 8 + n / 2"),
    "keys keep their places": ("scales of heads", r"n % 2 \* 1 \+ n / 2 \* 8", "n"),
    "lanes' keys as they come": ("scales of heads", r"lane % 4 \* 2;", "lane % 4 * 4;"),
    "weights of other keys": (
        "scales of heads", LOOP + r"i % 2 \* 2 \+ 4\]", r"\1i % 2 * 2 + 5]",
    ),
    "weights of the other row": (
        "scales of heads", LOOP + r"i % 2 \* 2 \+ 0\]", r"\1(1 - i % 2) * 2]",
    ),
    "weights are not raised": ("scales of heads", r"\+ 8\.0f\)", "+ 0.0f)"),
    "sums stay raised": ("scales of heads", r"sums\[e\] \*= 0\.00390625f;", ";"),
    "totals stay raised": ("scales of heads", r"0\.00390625f \* x", "1.0f * x"),
    "scales of the last row": ("scales of heads", r"(g\d)\[r\] \* x0", r"\1[0] * 0.5f * x0"),
    "the copy is not waited for": ("scales of heads", r"tw::await_launches\(\);", ""),
    "the copy of another head": ("scales of heads", r"(const int h1 = )head", r"\1 1 + head"),
    "columns of the copy": ("scales of heads", r"column \+ e\)", "column + (e ^ 1))"),
    "the last keys are not copied": ("scales of heads", r"word < 36", "word < 32"),
    "a key beyond the last is copied": (
        "keys along memory", r"tw_least(\(first.*?), 66", r"tw_most\1, 66",
    ),
    "a column beyond the last is stored": ("keys along memory", r"warp < \d+", "warp < 1000"),
    "sums of the last tile alone": (
        "scales of heads", r"sums\[e\] \+= added\[e\]", "sums[e] = added[e]",
    ),
    "rows of the tile before stay": (
        "tickets", r"(i32 j|[^\n]*)for \(int e = 0; e < 36; e\+\+\) sums\[e\] = 0\.0f;", r"\1",
    ),
    "panels in 16 bits": ("two panels of columns", r"(&output_map, .*?, 0 )\+ 64", r"\1+ 128"),
    "a part is left out": ("keys in parts", r"int part = 0; part < 4", "int part = 1; part < 4"),
    "parts stay raised": (
        "parts for a second kernel", r"sums\[e\] \*= 0\.00390625f;", ";",
    ),
    "another dtype of keys": ("two dtypes", LOOP + r"e5m2_e4m3_ss", r"\1e5m2_e5m2_ss"),
}  # fmt: skip


def random_cases(seeds: range) -> list[Case]:
    """A schedule of each random form that is served and whose inputs are telling."""
    cases = []
    for seed in seeds:
        own = {"i": (64, 70, 131)[seed % 3], "d": (16, 32, 48, 112)[seed % 4]}
        found = random_form(seed, (E4M3, E5M2)[seed % 2], **own)
        work = Workload("program", (), found, "")
        if ChainedHopper.refuses(work, SMALL):
            continue
        try:
            one_draw(work, 0)
        except InputError:
            continue
        space = space_of(work)
        (row,) = space.sample(np.random.default_rng(seed), 1)
        cases.append((work, space.lower(space.schedule(row))))
    return cases


class TestFloat8(KernelContract):
    cases, bugs = CASES, BUGS


@pytest.mark.slow
class TestFurtherFloat8(KernelContract):
    cases = FURTHER


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 200, 50))
def test_random_forms_agree(emulator, begin):
    cases = random_cases(range(begin, begin + 50))
    assert len(cases) > 10
    check_all_right(emulator, cases)

"""Chained kernels of TMA and wgmma: hard cases and planted bugs on the emulator, machine code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, check_right
from tests.measure.cuda.kernels.chained.chained_hopper_cases import (
    CASES,
    FURTHER,
    SMALL,
    attention,
    of_form,
    space_of,
)
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import FORMS, form
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.workloads.workload import Workload


def randomly(seed: int) -> Case:
    """A form and a schedule at random."""
    draw = np.random.default_rng(seed)

    def one(*values: int | str) -> int | str:
        return values[draw.integers(len(values))]

    i, j = int(one(1, 17, 64, 129, 211)), int(one(16, 64, 97, 129, 200))
    group, window = int(one(1, 2, 4)), int(one(0, 0, 30))
    w = attention(
        b=one(1, 2), h=4, kv=4 // group, i=i, j=max(i, j), d=one(16, 40, 64, 72, 128),
        mask=one("none", "causal"), window=window, dtype=one("float16", "bfloat16"),
    )  # fmt: skip
    space = space_of(w)
    return w, space.lower(space.schedule(space.sample(draw, 64)[0]))


REFUSED = {"rotated queries", "rotated keys", "pages", "keys in 8 bits", "two values",
           "two weights", "softmax of a product", "loss over a vocabulary",
           "loss by a read place", "moments of a product", "moments of what counts",
           "two products"}  # fmt: skip
# what is broken: kernel, pattern, replacement of its first occurrence
LOOP = r"(more = 0;[\s\S]*?for \(j--[\s\S]*?)"
BUGS = {
    "a stale maximum": ("apart", LOOP + r"state0\[r\] = next0\[h\];", r"\1"),
    "sums are corrected before they have ended": (
        "plain",
        r"tw::wgmma_wait<0>\(\);\n +tw::settle\(sums\);(\n +if \(lane == 0\))",
        r"\1",
    ),
    "keys are released too early": (
        "plain",
        r"(tw::mbarrier_wait\(keys_full \+ 8 \* stage, phase\);)",
        r"\1 if (lane == 0) tw::mbarrier_arrive(keys_empty + 8 * stage);",
    ),
    "the last weights are not packed": (
        "plain",
        r"i < 16; i\+\+\)(\s+weights\[)",
        r"i < 15; i++)\1",
    ),
    "a turn is not given on": ("plain", r"(tw::arrive_named\(1 \+ \(group)", r"if (0) \1"),
    "another head of keys": ("grouped heads", r"(&keys_map, .*?), b1", r"\1, b2"),
    "a key too many": ("apart", r"at < to\[h\]", "at <= to[h]"),
    "no key is not zero": ("rows without a key", r"= low\[r\] < high\[r\]", "= true"),
    "tanh far from zero by the polynomial": (
        "softcap",
        r"if \(tw::any_lane\(!\(largest.*\{",
        "if (0) {",
    ),
    "scores near zero by half": (
        "scores near zero",
        r"tw_odd\(x0, ([\d.]+f, -[\de.-]+f)\)",
        r"tw_odd(x0, 0.5f * \1)",
    ),
    "all keys of a tile are at its first": ("softcap", r"\(float\)\(at", "(float)(0 * at"),
    "eight columns of another block": (
        "parts for a second kernel",
        r"eight \* 4 \+ ",
        "(eight ^ 1) * 4 + ",
    ),
    "the last part is left out": (
        "parts for a second kernel",
        r"int part = 0; part < 4; part\+\+",
        "int part = 0; part < 3; part++",
    ),
    "parts are read before they are there": (
        "a second kernel that begins early",
        r"tw::await_launches\(\);",
        "",
    ),
    "an edge of the window is no edge": ("window", r"tile >= whole_first", "true"),
    "columns of another block of the cluster": (
        "parts for a cluster",
        r"\+ q \* 4 \+ n\)",
        "+ (q ^ 1) * 4 + n)",
    ),
    "a part of the cluster is left out": (
        "parts for a cluster",
        r"int part = 0; part < 2; part\+\+",
        "int part = 0; part < 1; part++",
    ),
    "a part goes where another warpgroup's does": (
        "parts for a cluster",
        r"\+ group \* \d+ \+ sharer",
        "+ sharer",
    ),
    "a part goes where a warpgroup still multiplies from": (
        "parts for a cluster",
        r"tw::cluster_arrive_relaxed\(\);(\n +int low[\s\S]*)tw::cluster_wait\(\);",
        r"\1",
    ),
    "parts of a cluster are read before all have come": (
        "parts for a cluster",
        r"tw::mbarrier_wait_cluster\(.*\);",
        "",
    ),
    "the counter is left": ("tickets", r"tw::store_global<u32>\(\(u32 \*\)workspace, 0u\)", ""),
}
MORE_BUGS = {
    "parts are merged before all are there": ("keys in parts", r"== 3;", ">= 0;"),
    "rows of the other warpgroup": (
        "parts for a second kernel",
        r"(_merge[\s\S]*?\(tile_number \* 2 \+) group\)",
        r"\1 1 - group)",
    ),
    "a part twice": ("keys in parts", r"int part = 0; part < 4", "int part = 1; part < 4"),
    "a part is not corrected": ("keys in parts", r"two0\[(\d)\], factor0", r"two0[\1], 1.0f"),
    "parts overlap": (
        "keys in parts",
        r"all_first \+ \(all_end - all_first\) \* part / 4",
        "all_first",
    ),
    "rows of a part without keys are kept": (
        "parts without keys",
        r"(sums\[e\] = 0\.0f;\s+)if \(stored >= 0",
        r"\1if (0",
    ),
    "a part is not fenced": ("keys in parts", r"tw::fence_global\(\);", ""),
    "sums are not corrected": ("free", r"sums\[e\] \*= factor0\[e / 2 % 2\];", ";"),
    "scores are read before they have ended": ("apart", r"tw::wgmma_wait<0>\(\);", ""),
    "keys are read before they are there": (
        "apart",
        r"tw::mbarrier_wait\(keys_full \+ 8 \* stage, phase\);",
        "",
    ),
    "values are read before they are there": (
        "apart",
        r"tw::mbarrier_wait\(values_full \+ 8 \* stage, phase\);",
        "",
    ),
    "a key too few": ("window", r"at >= from\[h\]", "at > from[h]"),
    "whole where it is not": ("apart", LOOP + r" <= whole_last\)", r"\1 <= whole_last + 64)"),
    "a tile half inside is left out": ("free", r"\(end_key \+ 63\)", "(end_key + 40)"),
    "the output leaves before all have written": (
        "plain",
        r"tw::sync_named\(3 \+ group, 128\);",
        "",
    ),
    "the total is not corrected": (
        "free",
        LOOP + r"state1\[r\], factor0\[h\]",
        r"\1state1[r], 1.0f",
    ),
    "a correction inverted": ("apart", r"\((\w+\[h\]) - (\w+\[h\])\) \*", r"(\2 - \1) *"),
    "weights are packed under the product": (
        "plain",
        r"(more = 0;[\s\S]*?tw::wgmma_wait<1>\(\);[\s\S]*?)tw::wgmma_wait<0>\(\);",
        r"\1",
    ),
    "a tile of its own is passed over": (
        "own keys, in turn",
        r"\(i32\)own_key / 48",
        "own_key / 48 + 1",
    ),
    "a turn less for tiles passed over": (
        "window",
        r"(tw::sync_warp\(\);[\s\S]*?)tw::arrive_named\(1 \+ \(group \+ 1\) % 2, 256\);",
        r"\1",
    ),
    "a tile of the window is left out": (
        "window",
        r"tw_least\(first_key / 32",
        "tw_least((first_key + 31) / 32",
    ),
    "not divided": ("plain", r"1\.0f / u1", "1.0f"),
    "lanes do not meet": (
        "plain",
        r"state1\[r\] \+ tw::shuffle_xor\(state1\[r\], 2\)",
        "state1[r]",
    ),
    "rows of another warpgroup": ("plain", r"\(row0 \+ group \* 64\)", "row0"),
    "rows come before the output has left": ("walking", r"tw::tma_wait_read<0>\(\);", ""),
    "the output is not fenced": ("plain", r"tw::fence_async\(\);", ""),
    "a tile is passed over": ("tickets", r"(\(i32\)ticket \+ )", r"\1 1 + "),
    "a length of another sequence": ("lengths of a call", r"buffer3 \+ b0", "buffer3 + 0 * b0"),
    "a document of another row": ("documents", r"p0\[r\] = q0", "p0[r] = q0 / 2"),
    "maxima of one document": ("documents", r"seen\[r\] \|= any\[h\];", ""),
    "a bias of another key": ("bias", r"\+ key", "+ (key ^ 1)"),
}


class TestChainedHopper(KernelContract):
    cases, bugs = CASES, BUGS


def test_kernels_of_slow_bugs_are_written():
    for name in MORE_BUGS:
        TestFurtherChainedHopper().planted(name)


@pytest.mark.slow
class TestFurtherChainedHopper(KernelContract):
    cases, bugs = FURTHER, MORE_BUGS

    def case(self, name):
        return (CASES | FURTHER)[name]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(FORMS)), ids=list(FORMS))
def test_forms_are_served_by_their_texts_alone_or_refused_in_words(emulator, number):
    name = list(FORMS)[number]
    if name in REFUSED:
        w = Workload("program", (), form(name, "float16"), "")
        assert ChainedHopper.refuses(w, SMALL)
        return
    lazy = {"rescale": "moved"} if name in ("no chain", "softmax of a product") else {}
    overlap = {
        "overlap": number % 2,
        "chain_overlap": number % 2 * (1 + number // 4 % 2),
        "query_storage": ("shared", "registers")[number // 2 % 2],
    }
    check_right(emulator, of_form(name, **overlap, **lazy))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_forms_and_schedules_agree_with_the_reference(emulator, seed):
    check_right(emulator, randomly(seed))

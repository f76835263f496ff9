"""Chained kernels of a GPU on the emulator: all forms of attention, planted bugs, random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from measure.cuda.compilation import compile_cubin
from measure.cuda.emulator import INTERLEAVINGS, Emulator
from measure.cuda.emulator.verify import judged
from measure.drawing.draw import Draw, one_draw
from measure.drawing.programs import ProgramDraw
from spaces.cuda.chained.template import CudaChained
from spaces.cuda.intrinsics import device_text
from spaces.cuda.target import cuda_target
from spaces.errors import InputError
from spaces.language import Program
from spaces.numerics.allowance import agrees
from spaces.operators import workload
from spaces.schedule import Schedule
from spaces.space import Space
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload
from tests.measure.cuda.emulator.planting import Case, check_right, planted
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.chained_programs import FORMS, SCORE, VALUE, form, made, random_form

H200 = cuda_target("sm_90a")
PLAIN = {
    "queries": "shared",
    "columns": 32,
    "slices": 1,
    "keys": 16,
    "warps": 2,
    "teams": 1,
    "stages": 2,
    "residency": 1,
    "rescale": "always",
    "split": 1,
    "merge": "kernel",
    "order": "rows",
}
HELD = {**PLAIN, "queries": "registers", "keys": 32, "stages": 3, "rescale": "late"}
WIDE = {**PLAIN, "slices": 2, "warps": 1, "keys": 48, "order": "products"}
SPLIT = {**PLAIN, "split": 3, "rescale": "late", "merge": "last"}
LATER = {**SPLIT, "merge": "kernel", "slices": 2}
ALONE = {**PLAIN, "warps": 1, "teams": 4, "stages": 3}
PAIRS = {**HELD, "teams": 2, "keys": 16, "split": 2, "merge": "last"}
TEAMS = {**PLAIN, "warps": 1, "slices": 2, "teams": 2, "rescale": "moved", "split": 2}
CLUSTER = {**HELD, "keys": 16, "split": 2, "merge": "cluster"}
SHARED = {**ALONE, "teams": 2, "split": 4, "merge": "cluster", "rescale": "moved"}
IN_CLUSTERS = {
    "log of the sum": CLUSTER,
    "causal": SHARED,
    "rows without a key": SHARED,
    "loss over a vocabulary": CLUSTER,
}
IN_TEAMS = {
    "grouped heads": ALONE,
    "causal": PAIRS,
    "rows without a key": TEAMS,
    "documents": ALONE,
    "two weights": PAIRS,
    "loss over a vocabulary": TEAMS,
}


def dtype_of(name: str) -> str:
    """Weights without a bound need the range of bfloat16."""
    return "bfloat16" if name in ("no chain", "half precision") else "float16"


def case(found: Program, values: dict) -> Case:
    """The kernel of a schedule of a program."""
    work = Computation("program", (), found, "")
    template = CudaChained(work, H200)
    columns = template.decisions[1].values[-1]
    return work, template.lower(Schedule("chained", tuple({**values, "columns": columns}.items())))


CASES = {
    f"{name}, {number}": case(form(name, dtype_of(name)), values)
    for number, name in enumerate(FORMS)
    for values in [(PLAIN, HELD, WIDE, SPLIT, LATER)[number % 5]]
}
CASES |= {
    f"{name} in teams": case(form(name, dtype_of(name)), values)
    for name, values in IN_TEAMS.items()
}
CASES |= {
    f"{name} in clusters": case(form(name, dtype_of(name)), values)
    for name, values in IN_CLUSTERS.items()
}
FLOAT8 = (
    "k: float8_e4m3fn[b,2,j,d]\nv: float8_e4m3fn[b,2,j,e]\n"
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * scale[b,j] * 0.2) "
    "* u[b,j] * v[b,h // 2,j,e])"
)
CASES["keys in float8"] = case(made(FLOAT8, "bfloat16", e=40), ALONE)
CASES["one query of each sequence"] = case(
    made(
        "n: int32[b](index < 54)\nwhere j < n[b]\n"
        "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d])) * v[b,j,e])",
        "float16",
    ),
    {**PLAIN, "warps": 1},
)
REACHED = f"y[b,h,i,e] = sum[j](softmax[j](0.5 * tanh({SCORE} / 0.5) + bias[j]) * {VALUE})"
CASES["softcap that is reached"] = case(made(REACHED, "float16"), HELD)
BROKEN = {
    "causal": case(form("causal", "float16"), PLAIN),
    "many": case(form("grouped heads", "float16"), PLAIN),
    "parts": case(form("log of the sum", "float16"), SPLIT),
    "late": case(form("log of the sum", "float16"), LATER),
    "early": case(form("log of the sum", "float16"), {**LATER, "merge": "early"}),
    "slopes": case(form("alibi", "float16"), HELD),
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "tanh far from zero by the polynomial": (
        "softcap that is reached",
        r"if \(tw::any_lane\(!\(largest.*\{",
        "if (0) {",
    ),
    "tanh of twice the argument": (
        "softcap that is reached",
        r"(tw_tanh_by_power\(x\d+) \*",
        r"\1 * 2.0f *",
    ),
    "all keys of a tile are at its first": ("slopes", r"\(float\)at, ", "0.0f, "),
    "the correction is inverted": ("many", r"\((n\d\[h\]) - (o\d\[h\])\)", r"(\2 - \1)"),
    "sums are not corrected": ("many", r"sums0\[f\]\[j\]\[e\] \*= factor0\[e / 2\];", ";"),
    "the factor of the other row": ("many", r"\*= factor0\[e / 2\]", "*= factor0[1 - e / 2]"),
    "the total is not corrected": ("many", r"state1\[r\] \* factor0\[h\]", "state1[r]"),
    "lanes do not join their greatest": (
        "many",
        r"part0\[h\] = tw::max_nan\(part0\[h\], tw::shuffle_xor\(part0\[h\], 2\)\);",
        "",
    ),
    "lanes do not join their totals": (
        "many",
        r"state1\[r\] = state1\[r\] \+ tw::shuffle_xor\(state1\[r\], 1\);",
        "",
    ),
    "one key too many": ("causal", r"to\[h\] = high\[r\] - first", "to[h] = high[r] - first + 1"),
    "a tile half inside is taken for whole": (
        "causal",
        r"tile \+ 16 <= whole_last",
        "tile <= whole_last",
    ),
    "the last tile is not visited": (
        "many",
        r"tile < last_key; tile \+= 16",
        "tile + 16 < last_key; tile += 16",
    ),
    "a warp skips its last tile": ("causal", r"tile < own_last &&", "tile + 16 < own_last &&"),
    "a stage is read before it is full": (
        "many",
        r"tw::cp_async_wait<0>\(\);\n    tw::sync_block\(\);",
        "tw::sync_block();",
    ),
    "a stage is filled while it is read": ("many", r"\(step \+ 1\) % 2", "step % 2"),
    "keys beyond the last count": ("many", r"to\[h\] = high\[r\]", "to[h] = 16 + high[r]"),
    "values of another head": ("many", r"(buffer2 \+ \([^;]*?)b1", r"\1(1 - b1)"),
    "weights of the other half": (
        "many",
        r"weights0\[k\]\[f\]\[i\] = ",
        "weights0[k][f][3 - i] = ",
    ),
    "a part is not corrected": ("parts", r" \* factor0;", ";"),
    "parts are merged before they are there": ("early", r"tw::await_launches\(\);", ""),
    "the sums of another group": ("late", r" \+ group \+", " + 0 +"),
    "a part is left where another is": ("late", r"parts \+ part \* ", "parts + 0 * "),
    "float8 keys change places": ("keys in float8", r"to_float\(raw0\[v\]", "to_float(raw0[v ^ 1]"),
    "float8 keys of the piece before": (
        "keys in float8",
        r"tw_least\((0 \+ .*), 16\);",
        r"tw_least(\1, 8);",
    ),
    "a team has the keys of the first": (
        "grouped heads in teams",
        r"begin_key \+= team \* share",
        "begin_key += 0 * share",
    ),
    "rows are read before all teams have loaded them": (
        "grouped heads in teams",
        r"tw::cp_async_wait<2>\(\);\n +tw::sync_block\(\);",
        "",
    ),
    "a team leaves its part while others read keys there": (
        "grouped heads in teams",
        r"tw::sync_block\(\);(\n +\{\n +const u32 parts)",
        r"\1",
    ),
    "a team stores the columns of the first": (
        "grouped heads in teams",
        r"column0 = block_column \+ team \* 8",
        "column0 = block_column + 0 * 8",
    ),
    "a team's sums are not corrected": (
        "causal in teams",
        r"(two0\[\d\]) \* factor0;",
        r"\1;",
    ),
    "a block's own part for all of a cluster": (
        "causal in clusters",
        r", part / 2\);",
        ", (unsigned)blockIdx.x % 4);",
    ),
    "a block ends before others have read its part": (
        "causal in clusters",
        r"tw::cluster_arrive\(\);([\s\S]*)tw::cluster_wait\(\);",
        r"\1",
    ),
    "parts of a cluster are read before they are left": (
        "log of the sum in clusters",
        r"tw::sync_cluster\(\);",
        "tw::sync_block();",
    ),
    "a block stores the columns of the first of its cluster": (
        "causal in clusters",
        r"column0 = block_column \+ sharer \* 8",
        "column0 = block_column + 0 * 8",
    ),
    "warps of a team do not meet": (
        "causal in teams",
        r"tw::sync_named\(1 \+ team, 64\);",
        "",
    ),
    "a part is left out": ("parts", r"for \(int part = 0; part < 3", "for (int part = 1; part < 3"),
    "parts are merged by whoever comes": (
        "parts",
        r"if \(!is_last\) return;",
        "",
    ),
    "tickets are not given back": (
        "parts",
        r"if \(threadIdx.x == 0\) tw::store_global\(ticket, 0u\);",
        "",
    ),
    "keys between two parts are left out": (
        "parts",
        r"begin_key \+= part \* share",
        "begin_key += part * (share + 16)",
    ),
    "rows beyond the last are written": (
        "many",
        r"tw_least\(own, 89\)((?:.*\n)*.*lane / 4) < 90\)",
        r"own\1 < 200)",
    ),
}


class TestChainedKernels(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


def sampled(found: Program, count: int, seed: int) -> list[Case]:
    """Random schedules of a program; none of one that is refused."""
    work = Computation("program", (), found, "")
    if CudaChained.refuses(work, H200):
        return []
    space = Space(work, H200, [CudaChained(work, H200)])
    rows = space.sample(np.random.default_rng(seed), count)
    return [(work, space.lower(space.schedule(row))) for row in rows]


def random_cases(seeds: range) -> list[Case]:
    """A schedule of each random form that has a row with a key, and whose outputs are telling."""
    cases = []
    for seed in seeds:
        try:
            drawn = sampled(random_form(seed, ("float16", "bfloat16")[seed % 2]), 1, seed)
            cases += [each for each in drawn if one_draw(each[0], 0)]
        except InputError as refused:
            if not any(words in str(refused) for words in ("no element for any row", "cannot be")):
                raise
    return cases


def test_random_forms_agree(emulator):
    cases = random_cases(range(12))
    emulator.build([kernel for _, kernel in cases])
    for drawn in cases:
        check_right(emulator, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(100, 650, 50))
def test_many_random_forms_agree(emulator, begin):
    cases = random_cases(range(begin, begin + 50))
    emulator.build([kernel for _, kernel in cases])
    for drawn in cases:
        check_right(emulator, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("i", "j"), [(1, 1), (1, 129), (17, 64), (64, 17), (129, 131)])
def test_forms_agree_at_all_lengths(emulator, name, i, j):
    if name == "pages" or "< 54" in FORMS[name] or "< 53" in FORMS[name]:
        j = min(j, 53)
    try:
        cases = sampled(form(name, dtype_of(name), i=i, j=j), 3, i)
    except InputError as refused:
        if "no element for any row" not in str(refused):
            raise
        return
    emulator.build([kernel for _, kernel in cases])
    for work, kernel in cases:
        result = judged(emulator, kernel, any_draw(work), INTERLEAVINGS)
        assert result.error_kind is None, result.error_text


def any_draw(work: Workload) -> Draw:
    """Inputs that tell right kernels from wrong ones; any, where none tell: a softmax of one key is
    one whatever its score."""
    try:
        return one_draw(work, 0)
    except InputError:
        return ProgramDraw(work, work.make_inputs(0))


def complaints(
    emulator: Emulator, name: str, inputs: dict[str, np.ndarray], **meant: np.ndarray
) -> list[str]:
    """Outputs of some schedules that are not what ``inputs``, changed to those ``meant``, allow."""
    cases = [case(form(name, dtype_of(name)), values) for values in (PLAIN, HELD, SPLIT, LATER)]
    work = cases[0][0]
    allowed = replace(one_draw(work, 0), inputs=inputs | meant).allowed()
    found = []
    for _, kernel in cases:
        outputs = emulator.run(kernel, inputs, INTERLEAVINGS[0]).outputs
        found += [
            n for n, (low, high) in allowed.items() if not agrees(outputs[n], low, high).all()
        ]
    return found


def inputs_of(name: str) -> dict[str, np.ndarray]:
    return dict(Computation("program", (), form(name, dtype_of(name)), "").make_inputs(0))


@pytest.mark.parametrize("scale", [1e4, -1e4, 0.0])
def test_scores_that_overflow_an_exponential_and_equal_ones_agree(emulator, scale):
    inputs = inputs_of("log of the sum")
    inputs["q"] = (inputs["q"] * 0 + scale).astype(np.float16)
    inputs["k"] = np.round(inputs["k"] * 2).astype(np.float16)
    assert complaints(emulator, "log of the sum", inputs) == []


def test_keys_that_a_bias_of_minus_infinity_hides_do_not_count(emulator):
    inputs = inputs_of("bias")
    inputs["bias"][:, :, ::3] = -np.inf
    inputs["bias"][:, 3, :50] = -np.inf
    assert complaints(emulator, "bias", inputs) == []


def test_a_page_beyond_its_table_is_no_wild_read(emulator):
    """Of the table's entries the nearest counts."""
    inputs = inputs_of("pages")
    inputs["t"] = np.array([[2**31 - 1, 0, -(2**31), 3], [8, 8, 99, 1]], np.int32)
    near = np.array([[8, 0, 0, 3], [8, 8, 8, 1]], np.int32)
    assert complaints(emulator, "pages", inputs, t=near) == []


@pytest.mark.parametrize("values", [PLAIN, HELD, ALONE])
def test_skipping_tiles_changes_no_bit(emulator, values):
    """Nor does taking part in all of them, with keys that none of a warp's rows see."""
    found = case(form("causal", dtype_of("causal"), i=70, j=90), values)
    skips = r"tile < own_last && tile \+ \d+ > own_first"
    every = planted(found, skips, "true", "every_tile")
    inputs = found[0].make_inputs(0)
    outputs = [emulator.run(k, inputs, INTERLEAVINGS[0]).outputs["y"] for _, k in (found, every)]
    np.testing.assert_array_equal(*outputs)


def test_lengths_beyond_the_keys_are_all_of_them_and_negative_ones_none(emulator):
    inputs = inputs_of("prefix lengths")
    inputs["n"] = np.array([2**31 - 1, -(2**31)], np.int32)
    near = np.array([53, 0], np.int32)
    assert complaints(emulator, "prefix lengths", inputs, n=near) == []


def test_kernels_compile_for_the_gpu_without_spills():
    work = workload("attention", b=1, h=8, i=2048, j=2048, d=128, mask="causal", dtype="float16")
    template = CudaChained(work, H200)
    for values in ({"keys": 64, "warps": 4}, {"queries": "registers", "keys": 64, "warps": 4}):
        chosen = {**PLAIN, "columns": 128, **values}
        kernel = template.lower(Schedule("chained", tuple(chosen.items())))
        text = device_text(kernel.source.text) + kernel.source.text
        built = compile_cubin(text, "sm_90a", 120, lambda: False)
        assert built.cubin is not None, built.log[:2000]
        assert " 0 bytes spill stores" in built.log

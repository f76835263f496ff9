"""The chained template of a CPU: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.chained_programs import FORMS, form, made, random_form
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tilewright.spaces.cpu.chained.template import ChainedTemplate
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)


def computation(text: str, **extents: int) -> Workload:
    return Workload("program", (), made(text, **extents), "")


def space_of(w: Workload) -> Space:
    return Space(w, TARGET, [ChainedTemplate(w, TARGET)])


def kernels(w: Workload, count: int, seed: int = 0) -> list[Kernel]:
    """Kernels of some schedules of the space."""
    space = space_of(w)
    drawn = np.unique(space.sample(np.random.default_rng(seed), count), axis=0)
    return [space.lower(space.schedule(row)) for row in drawn]


def complaints(w: Workload, made: list[Kernel], folder: Path, inputs=None) -> list[str]:
    """What is wrong with any of the kernels."""
    library = compile_kernels(made, TARGET, folder)
    return [found for kernel in made if (found := complaint(kernel, library, w, 1, inputs))]


@pytest.mark.parametrize("name", FORMS)
def test_forms_agree_with_their_unfused_programs(name, tmp_path):
    w = Workload("program", (), form(name), "")
    assert complaints(w, kernels(w, 2), tmp_path) == []


def test_conditions_may_call_functions(tmp_path):
    w = computation(f"where max(abs(i - j), 2) < 9\n{FORMS['grouped heads']}", i=20, j=20)
    assert complaints(w, kernels(w, 1), tmp_path) == []


SECOND = {
    "read": FORMS["bias"].replace("bias[h,i,j]", "bias[h,i,2 * j]"),
    "written": FORMS["other order"],  # rows of two
}


@pytest.mark.parametrize("what", SECOND)
def test_every_second_element_of_a_vector(what, tmp_path):
    w = computation(SECOND[what], i=2)
    assert complaints(w, kernels(w, 3), tmp_path) == []


def at_lengths(name: str, i: int, j: int) -> Workload | None:
    """A form at other lengths; None where no row would have a key."""
    j = min(j, 53) if re.search(r"\[b,4\]|< 5[34]", FORMS[name]) else j
    try:
        return Workload("program", (), form(name, i=i, j=j), "")
    except InputError as refused:
        if "no element for any row" in str(refused):
            return None
        raise


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("i", "j"), [(1, 1), (1, 129), (17, 64), (64, 17), (129, 131)])
def test_forms_agree_at_all_lengths(name, i, j, tmp_path):
    w = at_lengths(name, i, j)
    if w is not None:
        assert complaints(w, kernels(w, 8, seed=i), tmp_path) == []


def agrees_at_random(seed: int, folder: Path) -> bool:
    """Whether a random form is served; what is served agrees."""
    w = Workload("program", (), random_form(seed), "")
    if ChainedTemplate.why_not(w, TARGET):
        return False
    assert complaints(w, kernels(w, 2, seed), folder / str(seed)) == [], w
    return True


def test_random_forms_agree(tmp_path):
    assert sum(agrees_at_random(seed, tmp_path) for seed in range(6)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 650, 50))
def test_many_random_forms_agree(first, tmp_path):
    assert sum(agrees_at_random(seed, tmp_path) for seed in range(first, first + 50)) > 30


@pytest.mark.parametrize("scale", [1e4, -1e4, 0.0])
def test_scores_that_overflow_an_exponential_and_equal_ones_agree(scale, tmp_path):
    w = Workload("program", (), form("log of the sum"), "")
    inputs = w.make_inputs(0)
    inputs["q"] = (inputs["q"] * 0 + scale).astype(np.float32)
    inputs["k"] = np.round(inputs["k"] * 2).astype(np.float32)
    assert complaints(w, kernels(w, 4), tmp_path, inputs) == []


def test_keys_that_a_bias_of_minus_infinity_hides_do_not_count(tmp_path):
    w = Workload("program", (), form("bias"), "")
    inputs = w.make_inputs(0)
    inputs["bias"][:, :, ::3] = -np.inf
    inputs["bias"][:, 3, :50] = -np.inf
    assert complaints(w, kernels(w, 4), tmp_path, inputs) == []


def test_a_weight_of_negative_zero_is_seen(tmp_path):
    """A key is hidden by such a weight; others have it where a bias is that zero."""
    w = computation(
        "where j <= i\ns[i,j] = sum[d](q[i,d] * k[j,d])\n"
        "y[i,e] = sum[j](relu(s[i,j]) * u[j] * v[j,e])",
        i=70, j=75, d=24, e=20,
    )  # fmt: skip
    inputs = w.make_inputs(0)
    inputs["u"][20] = -0.0
    inputs["v"][[20, *range(72, 75)]] = np.inf
    assert complaints(w, kernels(w, 6), tmp_path, inputs) == []


def test_a_page_or_a_length_beyond_its_table_is_no_wild_read(tmp_path):
    """Lengths from a call may be anything; of the table's entries the nearest counts."""
    w = Workload("program", (), form("pages"), "")
    inputs = w.make_inputs(0)
    far = inputs | {"t": np.array([[2**31 - 1, 0, -(2**31), 3], [8, 8, 99, 1]], np.int32)}
    near = inputs | {"t": np.array([[8, 0, 0, 3], [8, 8, 8, 1]], np.int32)}
    found = kernels(w, 3)
    assert complaints(w, found, tmp_path / "near", near) == []
    assert complaints(w, found, tmp_path / "far", far) == []


def test_no_tile_that_nobody_sees_is_visited(tmp_path):
    """Keys that no query sees are never read: NaN in them does not show."""
    w = computation("where j <= i\n" + FORMS["grouped heads"], i=20, j=100)
    inputs = w.make_inputs(0)
    inputs["k"][:, :, 20:] = np.nan
    inputs["v"][:, :, 20:] = np.nan
    assert complaints(w, kernels(w, 6), tmp_path, inputs) == []


BUGS = [  # name: (form, what is replaced in the source, by what)
    ("mask_one_further", "causal", r"high\[r\]\)", "high[r] + 1)"),
    ("mask_one_short", "causal", r"< \(int\)high\[r\]", "< (int)high[r] - 1"),
    ("left_of_the_window", "window at both ends", r">= \(int\)low\[r\]", "> (int)low[r]"),
    ("tile_half_inside_skipped", "causal", r"last_key = tw_least\(.*\);", r"\g<0> last_key -= 9;"),
    ("whole_where_masked", "causal", r"if \(low\[r\] <= tile &&.*\{", "if (low[r] <= tile) {"),
    ("no_correction", "causal", r"if \(f0\[0\] != 1\.0f\)", "if (0)"),
    ("sum_not_corrected", "causal", r"\(s1 \* f0\)", "s1"),
    ("correction_inverted", "causal", r"moved_f0 = n(\d+) - o(\d+)", r"moved_f0 = o\2 - n\1"),
    ("stale_maximum", "causal", r"state0\[r\] = t0\[0\];", ""),
    ("not_divided", "causal", r"TW_NUMBER\(1\.0\) / s1", "TW_NUMBER(1.0)"),
    (
        "keys_of_the_first_product",
        "causal",
        r"if \(packed_keys != t / \d+\)",
        "if (packed_keys < 0)",
    ),
    ("wrong_head_of_a_group", "causal", r"\(first_row \+ r\) / \d+ % 2", "0"),
    (
        "last_column_of_panels",
        "grouped heads",
        r"(v < count; v \+= \d+)\)",
        r"v < count - 8; v += 8)",
    ),
    ("sums_begin_with_those_before", "causal", r"tile > first_tile\)", "1)"),
    (
        "weights_of_hidden_keys",
        "window at both ends",
        r"score\[r \* score_stride \+ v\] = -0.0f;",
        ";",
    ),
    ("no_key_is_not_zero", "rows without a key", r"seen\[r\] \? (x\w+|w\w+)", r"1 ? \1"),
    (
        "page_of_another",
        "pages",
        r"\[\((\w+) / 16\)",
        r"[(\1 / 8)",
    ),
    ("documents_mixed", "documents", r"(g\d+|x\w+) == (x\w+|g\d+)", r"\1 >= \2"),
]
LONG = {"pages": 64}
"""Keys of forms whose tables hold fewer than the others have: several tiles on any machine."""


@pytest.mark.parametrize("which", dict.fromkeys(which for _, which, *_ in BUGS))
def test_planted_bugs_are_found(which, tmp_path):
    w = Workload("program", (), form(which, i=150, j=LONG.get(which, 160)), "")
    inputs = w.make_inputs(0)
    for operand in ("q", "k"):  # weights that differ: a key left out shows
        inputs[operand] = inputs[operand] * 2
    space = space_of(w)
    wanted = {"rows": 8, "keys": 32 if TARGET.lanes(4) < 16 else 64, "workers": 2, "unroll": 1}
    wanted |= {"key_layout": "panels", "score_vectors": 1}
    schedule = next(
        s for s in space.enumerate() if all(s.values[d] == v for d, v in wanted.items())
    )
    kernel = space.lower(schedule)
    bugs = {name: change for name, form_of_it, *change in BUGS if form_of_it == which}
    check_bugs_are_found(kernel, bugs, w, TARGET, tmp_path, [inputs], count=0)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "product of matrices"),
        (workload("softmax", r=4, c=8), "needs one axis, its last"),
        (workload("attention", b=1, h=2, i=4, j=4, d=8, dtype="float16"), "is float16"),
        (
            computation("y: int8\np[i,j] = sum[d](x[i,d] * u[d,j])\ny[i] = argmax[j](p[i,j])"),
            "y is int8; allowed: int32",
        ),
        (
            computation("p[i,j] = sum[d](x[i,d] * u[d,j])\nm[i] = max[j](p[i,j])\n"
                        "y[i,e] = sum[j](exp(p[i,j] * m[i]) * v[j,e])"),
            "no corrections for one pass: in y, the exponent of exp(p[i, j] * m[i]) multiplies a "
            "result by an element; what a key gives may read results of its row in a factor",
        ),
        (
            computation("p[i,j] = sum[d](x[i,d] * u[d,j])\nm[i] = max[j](p[i,j])\n"
                        "y[i,e] = sum[j](exp(p[i,j] - m[i // 2]) * v[j,e])"),
            "m[i // 2] is the result of another row; a row reads its own alone, m[i]",
        ),
        (
            computation("l: int32[i](index < 53)\nwhere j > i\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
                        "y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]"),
            "z[i, l[i]] is the result of another row; write sum[j](select(j == l[i], z[i, j], 0))",
        ),
    ],
)  # fmt: skip
def test_refusals_say_what_is_needed(w, words):
    assert words in ChainedTemplate.why_not(w, TARGET)


def test_every_rule_refuses_something_and_says_why():
    target = dataclasses.replace(TARGET, threads=4, cores=4, l2_bytes=256 << 10)
    works = [workload("attention", b=1, h=2, i=i, j=j, d=40) for i, j in ((1, 40), (300, 1000))]
    assert not silent_rules([Space(w, target, [ChainedTemplate(w, target)]) for w in works], 400)


@pytest.mark.parametrize("name", ["causal", "pages", "two weights", "loss over a vocabulary"])
def test_quantities_are_complete_and_possible(name):
    checked_quantities(space_of(Workload("program", (), form(name), "")), seed=0, schedules=60)


def test_keys_read_in_place_are_not_packed_and_take_as_many_operations():
    space = space_of(Workload("program", (), form("causal"), ""))
    panels = space.schedule(space.sample(np.random.default_rng(0), 1)[0]).values
    panels = panels | {"rows": 8, "keys": 64, "score_rows": 2, "score_vectors": 2, "unroll": 1}
    template = space.templates["chained"]
    columns = {name: np.array([value, value]) for name, value in panels.items()}
    columns["key_layout"] = np.array(["panels", "dots"])
    found = template.quantities(columns)
    assert found["packing_bytes"][0] > found["packing_bytes"][1] == 0
    assert found["flops"][0] == found["flops"][1]
    assert found["instructions"][0] == found["instructions"][1]


def test_attention_has_this_template_alone():
    w = workload("attention", b=1, h=4, i=64, j=64, d=32, kv=2, mask="causal")
    assert list(space_for(w, this_cpu()).templates) == ["chained"]
    text = "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * u[d,j])) * v[j,e])"
    w = Workload("program", (), program(text, i=8, j=8, d=8, e=8), "")
    assert list(space_for(w, this_cpu()).templates) == ["chained"]

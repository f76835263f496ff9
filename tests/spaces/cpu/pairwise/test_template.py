"""The pairwise template of a CPU: its space, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import (
    check_bugs_are_found,
    check_sampled,
    compile_apart,
    compile_kernels,
    complaint,
    outcome,
    sampled,
)
from tests.spaces.pairwise_programs import ATTENTION, GRADIENTS, OTHERS, backward, other
from tilewright.spaces.cpu.pairwise.template import PairwiseTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.testing.template import TemplateContract, silent_rules
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

TARGET = dataclasses.replace(this_cpu(), threads=2, cores=2)


def extents_of(text: str) -> dict[str, int]:
    known = {"i": 30, "j": 41, "d": 12, "e": 20}
    return {axis: extent for axis, extent in known.items() if re.search(rf"[\[,]{axis}[\],]", text)}


class TestPairwise(TemplateContract):
    template = PairwiseTemplate

    def served(self) -> list[tuple[Workload, Target]]:
        found = [*map(backward, GRADIENTS), *map(other, OTHERS)]
        return [(made, TARGET) for made in found]

    def refused(self) -> list[tuple[Workload, Target]]:
        texts = ["matmul m=8 n=8 k=8", "softmax r=8 c=8", ATTENTION]
        targets = [(workload(text), TARGET) for text in texts]
        unsaved = workload_of(gradient(ATTENTION, "q,k,v"))
        return [*targets, (unsaved, TARGET), (backward("plain"), detect_target("cuda:sm_80"))]


def space_of(made: Workload) -> Space:
    return Space(made, TARGET, [PairwiseTemplate(made, TARGET)])


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_attention_agree(name: str, tmp_path: Path) -> None:
    check_sampled(space_of(backward(name)), 2, 1, tmp_path)


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_over_pairs_agree(name: str, tmp_path: Path) -> None:
    check_sampled(space_of(other(name)), 2, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADIENTS)
def test_many_schedules_agree(name: str, tmp_path: Path) -> None:
    check_sampled(space_of(backward(name)), 24, 2, tmp_path)


@pytest.mark.parametrize("is_causal", [False, True])
def test_derivatives_are_those_of_autograd_in_float64(is_causal: bool, tmp_path: Path) -> None:
    mask = "mask=causal" if is_causal else ""
    text = f"attention b=1 h=4 i=40 j=40 d=16 kv=2 {mask}"
    made = workload_of(gradient(text, "q,k,v", "y,lse"))
    rng = np.random.default_rng(0)
    shapes = {"q": (1, 4, 40, 16), "k": (1, 2, 40, 16), "v": (1, 2, 40, 16)}
    leaves = {n: torch.tensor(rng.normal(size=s), requires_grad=True) for n, s in shapes.items()}
    y = functional.scaled_dot_product_attention(
        *leaves.values(), is_causal=is_causal, enable_gqa=True
    )
    dy = torch.tensor(rng.normal(size=tuple(y.shape)))
    wanted = torch.autograd.grad(y, tuple(leaves.values()), dy)
    with torch.no_grad():
        scores = leaves["q"] @ leaves["k"].repeat_interleave(2, 1).transpose(2, 3) / 4
        hidden = torch.ones(40, 40, dtype=torch.bool).triu(1)
        lse = (scores.masked_fill(hidden, -torch.inf) if is_causal else scores).logsumexp(-1)
    known = {**leaves, "y": y, "lse": lse, "dy": dy}
    inputs = {o.name: known[o.name].detach().numpy().astype(np.float32) for o in made.inputs}
    (kernel,) = sampled(space_of(made), 1)
    failed, found = outcome(kernel, compile_kernels([kernel], TARGET, tmp_path), inputs)
    assert not failed
    for name, derivative in zip(shapes, wanted, strict=True):
        np.testing.assert_allclose(found[f"d{name}"], derivative, rtol=1e-4, atol=1e-5)


def test_what_is_hidden_may_be_infinite_or_nan(tmp_path: Path) -> None:
    """The last keys are hidden from all rows but the last ones, which see them."""
    made = backward("causal")
    inputs = made.make_inputs(0)
    for operand, value in (("k", np.nan), ("v", np.inf)):
        inputs[operand][:, :, 70:] = value
    for operand in ("dy", "q"):
        inputs[operand][:, :, -1] = np.inf
    kernels = sampled(space_of(made), 3)
    library = compile_kernels(kernels, TARGET, tmp_path)
    assert [complaint(kernel, library, made, 0, inputs) for kernel in kernels] == [""] * 3


@pytest.mark.parametrize("name", ["causal", "window, softcap, slopes"])
@pytest.mark.parametrize("operand", ["q", "k"])
def test_infinities_that_weigh_nothing_are_not_hidden(
    name: str, operand: str, tmp_path: Path
) -> None:
    """The weights of a row or key of infinities are zeros of either sign, and its sums are NaN."""
    made = backward(name)
    inputs = made.make_inputs(0)
    inputs[operand][:, :, 20, 3] = np.inf
    kernels = [small(made), *sampled(space_of(made), 3)]
    libraries = compile_apart(kernels, TARGET, tmp_path)
    for kernel, library in zip(kernels, libraries, strict=True):
        assert not complaint(kernel, library, made, 0, inputs)


BUGS = [  # name: (gradient, what is replaced in the source, by what)
    ("mask_one_further", "causal", r"\(int\)high\)", "(int)high + 1)"),
    ("whole_where_masked", "causal", r"low <= tile && high >= tile \+ count", "low <= tile"),
    ("tile_half_inside_skipped", "causal", r"last_key <= tile", "last_key <= tile + 9"),
    ("delta_of_the_first_rows", "causal", r"scalar0\[first_row \+ r\]", "scalar0[r]"),
    ("a_block_of_rows_left_out", "causal", r"(sums0) \+ \(first_row \+ r\)", r"\1 + r"),
    ("sums_of_keys_of_the_tile_before", "causal", r"(x\+\+\)) sums1\[x\] = 0.0f", r"\1"),
    ("weights_of_the_other_sum", "causal", r"pairs1 \+ k", "pairs0 + k"),
    ("keys_of_the_first_tile", "causal", r"const long key = tile \+ k", "const long key = k"),
    ("one_head_of_a_group", "groups", r"(first_row < )\d+", r"\g<1>33"),
    ("heads_of_a_group_mixed", "groups", r"\(first_row \+ r\) / \d+ % 2", "0"),
    ("groups_mixed", "groups", r"(const long p\d+ = batch) % 2", r"\1 % 1"),
]


@pytest.mark.parametrize("which", dict.fromkeys(which for _, which, *_ in BUGS))
def test_planted_bugs_are_found(which: str, tmp_path: Path) -> None:
    made = backward(which)
    bugs = {name: (change[0], change[1]) for name, form, *change in BUGS if form == which}
    check_bugs_are_found(small(made), bugs, made, TARGET, tmp_path, count=0)


def small(made: Workload, **values: int) -> Kernel:
    """The kernel of small blocks and tiles, by two workers."""
    wanted = {"rows": 8, "workers": 2, "score_rows": 4, "sum_rows": 2, "splits": 1}
    wanted |= {"keys": TARGET.lanes(4), "score_vectors": 1, "sum_vectors": 1} | values
    template = PairwiseTemplate(made, TARGET)
    decided = {d.name: wanted[d.name] for d in template.decisions}
    assert all(rule.holds(decided) for rule in template.rules)
    return template.lower(Schedule("pairwise", tuple(decided.items())))


SPLIT_BUGS = {  # what is replaced in the source of parts of keys, by what
    "the sums of a part are lost": (r"part < 3; part\+\+", "part < 2; part++"),
    "a part has the tiles of the first": (r"tile = part \* ", "tile = 0 * part * "),
    "parts overlap": (r"tile \+= \d+", f"tile += {TARGET.lanes(4)}"),
    "all parts add to the sums of the first": (r"\(item\) \* (\d+)L", r"(item / 3 * 3) * \1L"),
    "the parts of the first product": (r"\(batch \* 3\)", "(0 * batch)"),
    "sums of a part are not cleared": (r"(x\+\+\)) sums0\[x\] = 0.0f", r"\1"),
    "the last item is nobody's": (r"(tw_least\(6, \(worker \+ 1L\) \* )3", r"\g<1>2"),
}


def test_planted_bugs_in_parts_of_keys_are_found(tmp_path: Path) -> None:
    made = backward("causal")
    check_bugs_are_found(small(made, splits=3), SPLIT_BUGS, made, TARGET, tmp_path, count=0)


@pytest.mark.parametrize("name", ["one head of keys", "queries alone", "keys and values"])
def test_parts_of_keys_are_added_up_in_one_order(name: str, tmp_path: Path) -> None:
    """However many threads there are, and in every run."""
    made = backward(name)
    one = dataclasses.replace(TARGET, threads=3, cores=3)
    template = PairwiseTemplate(made, one)
    values = {d.name: d.values[0] for d in template.decisions} | {"splits": 3}
    kernels = [
        template.lower(Schedule("pairwise", tuple((values | {"workers": n}).items())))
        for n in (1, 3)
    ]
    library, inputs = compile_kernels(kernels, one, tmp_path), made.make_inputs(0)
    found = [outcome(kernel, library, inputs) for kernel in (*kernels, kernels[1])]
    assert not any(failed for failed, _ in found)
    for _, other_run in found[1:]:
        for output, values_of in found[0][1].items():
            assert np.array_equal(other_run[output], values_of), output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "s[i,j] = sum[d](x[i,d] * u[j,d])\ny[i] = sum[j](s[i,j] * s[i,j])",
            "y has axes none of its",
        ),
        ("y[i,j] = sum[d](x[i,d] * u[j,d])", "needs products of rows and keys that sums read"),
        (
            "s[i,j] = sum[d](x[i,d] * u[j,d])\nm[i] = max[j](s[i,j])\n"
            "y[i,e] = sum[j](s[i,j] * m[i] * v[j,e])",
            "m is no sum along one axis",
        ),
        (
            "s[i,j] = sum[d](x[i,d] * u[j,d]); n[i] = sum[d](x[i,d] * x[i,d])\n"
            "y[i,e] = sum[j](s[i,j] * n[29 - i] * v[j,e])",
            "n[29 - i] is computed for other rows or keys than those of a pair",
        ),
        (
            "s[i,j] = sum[d](x[i,d] * u[j,d])\ny[i,e] = sum[j](s[i,j] * v[j,e])\n"
            "z[j,e] = sum[i: i < 9](s[i,j] * w[i,e])\n-> y, z",
            "y and z are sums under different conditions",
        ),
    ],
)
def test_refusals_say_what_is_needed(text: str, words: str) -> None:
    made = Workload("program", (), program(text, **extents_of(text)), "")
    assert words in str(PairwiseTemplate.why_not(made, TARGET))


def test_every_rule_refuses_something_and_says_why() -> None:
    target = dataclasses.replace(TARGET, threads=4, cores=4)
    texts = ["attention b=1 h=2 i=40 j=40 d=40", "attention b=8 h=1 i=900 j=900 d=128"]
    works = [workload_of(gradient(text, "q,k,v", "y,lse")) for text in texts]
    spaces = [Space(made, target, [PairwiseTemplate(made, target)]) for made in works]
    assert not silent_rules(spaces, 400)


def test_the_gradient_of_attention_has_this_template_alone() -> None:
    assert list(space_for(backward("groups"), this_cpu()).templates) == ["pairwise"]

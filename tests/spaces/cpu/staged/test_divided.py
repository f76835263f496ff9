"""The CPU template that divides programs where it is predicted to cost least."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.native import compile_apart, complaint
from tests.spaces.cpu.staged.test_template import machine
from tilewright.spaces.cpu.staged.template import DividedTemplate
from tilewright.spaces.language import program
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.testing.template import TemplateContract
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

ATTENTION = "attention b=1 h=4 i=12 j=17 d=8"
SERVED = {
    "a product and gelu": ("matmul m=48 n=64 k=96 epilogue=gelu(x+bias[n])", "A,B,bias", ""),
    "a gated product": ("gated_matmul m=13 n=24 k=31", "A,gate,up", ""),
    "a normalised product": ("rmsnorm_matmul m=13 n=24 k=31", "A,weight,B", ""),
    "attention": (ATTENTION, "q,k,v", "y"),
    "causal attention of groups": (f"{ATTENTION} mask=causal kv=2", "q,k,v", "y"),
    "a convolution": (
        "conv2d n=2 c=8 h=9 w=10 o=16 r=3 s=3 padding=1 epilogue=gelu(x+bias[o])",
        "image,filter,bias",
        "",
    ),
}

BIASED = """\
where j <= i
y[b, h, i, e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d]) + bias[h,i,j]) * v[b,h,j,e])
"""


def asked(name: str) -> Workload:
    text, wrt, saved = SERVED[name]
    return workload_of(gradient(text, wrt, saved))


class TestDivided(TemplateContract):
    template = DividedTemplate

    def served(self) -> list[tuple[Workload, Target]]:
        return [(asked(name), machine(2)) for name in SERVED]

    def refused(self) -> list[tuple[Workload, Target]]:
        texts = ["matmul m=8 n=8 k=8", "softmax r=8 c=8", "gated_matmul m=16 n=16 k=16"]
        targets = [(workload(text), machine()) for text in texts]
        return [*targets, (asked("attention"), detect_target("cuda:sm_80"))]


@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_gradient(name: str, tmp_path) -> None:
    target, made = machine(2), asked(name)
    space = Space(made, target, [DividedTemplate(made, target)])
    rows = space.sample(np.random.default_rng(1), 3)
    kernels = [space.lower(space.schedule(row)) for row in rows]
    libraries = compile_apart(kernels, target, tmp_path)
    pairs = zip(kernels, libraries, strict=True)
    assert [complaint(kernel, library, made, 1) for kernel, library in pairs] == [""] * len(kernels)


def test_the_derivative_of_the_activation_is_computed_once() -> None:
    template = DividedTemplate(asked("a product and gelu"), machine())
    outputs = [[o.name for o in part.program.outputs] for part in template.parts]
    assert outputs == [["dC_sum"], ["dA"], ["dB"], ["dbias"]]


def test_conditions_are_in_the_arrays_that_products_read() -> None:
    attention = program(BIASED, b=1, h=2, i=12, j=12, d=8, e=8)
    made = workload_of(gradient(attention, "q,k,v,bias", "y,lse"))
    template = DividedTemplate(made, machine())
    assert not any(part.program.conditions for part in template.parts)


@pytest.mark.parametrize("name", SERVED)
def test_it_is_one_of_the_templates_of_a_gradient(name: str) -> None:
    assert "divided" in space_for(asked(name), machine()).templates


def test_maxima_and_sums_of_attention_are_computed_before_its_pairs() -> None:
    made = DividedTemplate(asked("causal attention of groups"), machine())
    found = [(part.template.name, [o.name for o in part.program.outputs]) for part in made.parts]
    assert found[0] == ("chained", ["y_max", "y_sum2"])
    assert found[-1] == ("pairwise", ["dq", "dk", "dv"])

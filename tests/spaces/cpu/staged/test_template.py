"""The CPU template of several kernels: what it serves, its rules, and what its kernels compute."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tilewright.spaces.cpu.staged.template import StagedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

SERVED = {
    "gated": "gated_matmul m=37 n=50 k=29",
    "gated, 16 bits": "gated_matmul m=9 n=40 k=33 dtype=bfloat16",
    "normalised": "rmsnorm_matmul m=13 n=24 k=31",
    "normalised, 16 bits": "rmsnorm_matmul m=13 n=24 k=31 dtype=bfloat16",
    "three products": '"y[i,l] = sum[j](sum[k](a[i,k] * b[k,j]) * relu(sum[q](c[j,q] * d[q,l])))" '
    "i=7 j=9 k=5 l=11 q=6",
    "a projection of attention": '"p[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e]); '
    'y[i,f] = sum[e](p[i,e] * w[e,f])" i=9 j=17 d=8 e=12 f=10',
    "rows in one pass": '"p[i,j] = softmax[j](x[i,j]); z[i,l] = sum[j](p[i,j] * w[j,l]); '
    'y[i] = var[l](z[i,l])" i=9 j=40 l=12',
    "numbers of a table": "grouped_matmul t=9 n=20 k=8 experts=3 epilogue=x+expert[t]",
    "two outputs": '"s[i,j] = sum[k](a[i,k] * b[k,j]); m[i] = max[j](s[i,j] * s[i,j]); '
    'y[i,j] = a[i,j] / (1 + m[i]); -> m, y" i=12 j=10 k=10',
}
REFUSED = {
    "matmul m=8 n=8 k=8": "one kernel computes a product of matrices",
    "softmax r=8 c=8": "one kernel computes it",
    '"y[i] = argmax[j](sum[k](a[i,k] * b[j,k]))" i=9 j=21 k=8': "one kernel computes it",
    '"a: int8; y[i] = max[j](sum[k](a[i,k] * a[j,k]))" i=3 j=3 k=4': "nothing to cut",
    "gated_matmul m=8 n=8 k=8 dtype=float16": "no kernel for a part, C_sum: A is float16",
    "gated_matmul m=8 n=8 k=8 dtype=float64": "nothing to cut",
}


def machine(threads: int = 1) -> CpuTarget:
    return dataclasses.replace(
        this_cpu(), threads=threads, cores=threads, l1_bytes=8 << 10, l2_bytes=32 << 10
    )


def space_of(name: str, target: CpuTarget) -> Space:
    w = workload(SERVED[name])
    assert StagedTemplate.why_not(w, target) is None
    return Space(w, target, [StagedTemplate(w, target)])


class TestStaged(TemplateContract):
    template = StagedTemplate

    def served(self):
        return [(workload(text), machine(2)) for text in SERVED.values()]

    def refused(self):
        targets = [(workload(text), machine()) for text in REFUSED]
        return [*targets, (workload(SERVED["gated"]), detect_target("cuda:sm_80"))]


@pytest.mark.parametrize("threads", [1, 6])
@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_program(name, threads, tmp_path):
    space = space_of(name, machine(threads))
    rows = space.sample(np.random.default_rng(threads), 5)
    kernels = list(
        {k.call.entry: k for k in (space.lower(space.schedule(r)) for r in rows)}.values()
    )
    library = compile_kernels(kernels, machine(threads), tmp_path)
    found = [complaint(kernel, library, space.workload, 1) for kernel in kernels]
    assert found == [""] * len(kernels) != []


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(StagedTemplate.why_not(workload(text), machine()))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gated", ["contraction", "contraction"]),
        ("normalised", ["rows", "thin_stream"]),
        ("three products", ["thin_stream", "chained"]),
        ("a projection of attention", ["chained", "thin_stream"]),
    ],
)
def test_each_part_has_the_first_template_that_serves_it(name, parts):
    (template,) = space_of(name, machine()).templates.values()
    assert isinstance(template, StagedTemplate)
    assert [each.name for each in template.templates] == parts


def test_a_rule_says_of_which_kernel_it_is():
    space = space_of("gated", machine())
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    wrong = dataclasses.replace(
        schedule,
        decisions=tuple((n, 64 if n == "tile_vectors_2" else v) for n, v in schedule.decisions),
    )
    with pytest.raises(InputError, match="tile_vectors_2"):
        space.lower(wrong)


def test_it_is_the_only_template_of_what_it_serves_and_nothing_to_others():
    target = machine()
    assert list(space_for(workload(SERVED["gated"]), target).templates) == ["staged"]
    assert "staged" not in space_for(workload("softmax r=8 c=8"), target).templates


def test_its_version_rises_with_those_of_its_parts():
    space = space_of("normalised", machine())
    (staged,) = space.templates.values()
    assert isinstance(staged, StagedTemplate)
    rows, thin = (each.versioned for each in staged.templates)
    assert space.versions == {f"staged.1+{rows}+{thin}"}
    assert space.is_earlier(f"staged.1+{rows}+contraction.0")
    assert not space.is_earlier(f"staged.1+{rows}+{thin}")
    assert not space.is_earlier(f"contraction.0+{rows}")


BUGS = {
    "kernels in the wrong order": (r"(?s)(void \*const given0.*?;\n.*?;\n)(.*?;\n.*?;\n)", r"\2\1"),
    "what is handed on overwrites what another kernel needs": (
        r"workspace \+ 8192, runtime",
        "workspace, runtime",
    ),
    "the wrong array is handed on": (r"given1\[\] = \{buffers\[0\]", "given1[] = {buffers[1]"),
}


def test_every_planted_bug_is_found(tmp_path):
    space, target = space_of("gated", machine()), machine()
    rows = space.sample(np.random.default_rng(3), 64)
    kernels = [space.lower(space.schedule(row)) for row in rows]
    right = next(k for k in kernels if k.call.workspace_bytes > 2 * 4096)
    check_bugs_are_found(right, BUGS, space.workload, target, tmp_path, count=0)

"""The CPU template of phases: transposed convolutions with strides."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels, complaint
from tests.spaces.cpu.staged.test_template import machine
from tilewright.spaces.cpu.staged.template import PhasedTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

LAYER = "conv2d_transposed n=2 c=5 h=6 w=9 o=7 stride=2 padding=1"
SERVED = {
    "taps that differ": f"{LAYER} r=3 s=3 output_padding=1",
    "equal phases": f'{LAYER} r=4 s=4 epilogue="relu(x + bias[o])"',
    "channels last": f'{LAYER} r=3 s=4 layout=NHWC epilogue="x + residual[n, p, q, o]"',
    "groups": "conv2d_transposed n=1 c=4 h=5 w=4 o=6 r=3 s=3 stride=2 groups=2",
    "steps as long as the filter": "conv2d_transposed n=1 c=4 h=5 w=20 o=6 r=2 s=2 stride=2",
    "elements without taps": "conv2d_transposed n=1 c=4 h=5 w=4 o=6 r=3 s=2 stride=2 dilation=2 "
    'epilogue="x + bias[o]"',
    "16 bits": f"{LAYER} r=3 s=3 dtype=bfloat16",
    "one dimension": '"x: float32[2,6,30]; y[n,o,p] = sum[c,r](select((p + 1 - r) % 3 == 0, '
    "inside(x[n,c,(p + 1 - r) // 3], 0), 0) * w[c,o,r]); z[n,o,p] = sigmoid(y[n,o,p] * g[n,o,p]); "
    '-> z" n=2 o=5 c=6 p=88 r=5',
    "three dimensions": '"x: float32[1,3,3,4,5]; y[n,o,p,q,u] = sum[c,r,s,t](select((p - r) % 2 == '
    "0 and (q - s) % 2 == 0 and (u + 1 - t) % 2 == 0, inside(x[n,c,(p - r) // 2,(q - s) // 2,"
    '(u + 1 - t) // 2], 0), 0) * w[c,o,r,s,t])" n=1 o=4 c=3 p=7 q=9 u=9 r=3 s=2 t=3',
}
REFUSED = {
    "conv2d n=1 c=4 h=9 w=9 o=4 r=3 s=3 stride=2": "it is no sum of which a stride leaves",
    "conv2d_transposed n=1 c=4 h=5 w=5 o=6 r=3 s=3": "it is no sum of which a stride leaves",
    "matmul m=8 n=8 k=8": "one kernel computes a product of matrices",
}


def space_of(name: str, target: CpuTarget) -> Space:
    w = workload(SERVED[name])
    assert PhasedTemplate.why_not(w, target) is None
    return Space(w, target, [PhasedTemplate(w, target)])


class TestPhased(TemplateContract):
    template = PhasedTemplate

    def served(self):
        return [(workload(text), machine(2)) for text in SERVED.values()]

    def refused(self):
        targets = [(workload(text), machine()) for text in REFUSED]
        return [*targets, (workload(SERVED["groups"]), detect_target("cuda:sm_80"))]


@pytest.mark.parametrize("threads", [1, 6])
@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_program(name, threads, tmp_path):
    space = space_of(name, machine(threads))
    rows = space.sample(np.random.default_rng(threads), 4)
    kernels = list(
        {k.call.entry: k for k in (space.lower(space.schedule(r)) for r in rows)}.values()
    )
    library = compile_kernels(kernels, machine(threads), tmp_path)
    found = [complaint(kernel, library, space.workload, 1) for kernel in kernels]
    assert found == [""] * len(kernels) != []


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(PhasedTemplate.why_not(workload(text), machine()))


@pytest.mark.parametrize("name", SERVED)
def test_no_slow_template_serves_what_it_does(name):
    assert list(space_for(workload(SERVED[name]), machine()).templates) == ["phased"]


def test_a_transposed_convolution_without_strides_is_one_kernel():
    layer = workload("conv2d_transposed n=1 c=4 h=5 w=5 o=6 r=3 s=3 padding=1")
    assert "windows" in space_for(layer, machine()).templates


def test_equal_phases_share_decisions():
    (equal,) = space_of("equal phases", machine()).templates.values()
    (different,) = space_of("taps that differ", machine()).templates.values()
    assert isinstance(equal, PhasedTemplate)
    assert isinstance(different, PhasedTemplate)
    assert (equal.numbers, different.numbers) == ([1, 1, 1, 1], [1, 2, 3, 4])
    assert len(equal.decisions) < len(different.decisions)


def test_what_follows_a_transposed_convolution_has_kernels_of_its_own():
    text = (
        '"x: float32[2,4,9]; y[n,o,p] = sum[c,r](select((p - r) % 2 == 0, inside(x[n,c,(p - r) // '
        '2], 0), 0) * w[c,o,r]); m[n,o] = mean[p](relu(y[n,o,p]))" n=2 o=5 c=4 p=18 r=3'
    )
    (staged,) = space_for(workload(text), machine()).templates.values()
    assert [each.name for each in staged.templates] == ["windows", "windows", "rows"]


BUGS = {
    "phases change places": (r"\(char \*\)buffers\[(\d)\] \+ 4\b", r"(char *)buffers[\1] + 0"),
    "a phase writes neighbours": (r"tw_spread_float32\((.*?), 2,", r"tw_spread_float32(\1, 1,"),
    "a filter runs forward": (r"row\[(.*?)-(\d+) \*", r"row[\1\2 *"),
    "a filter begins elsewhere": (r"\*row = from \+ \(", "*row = from + 1 + ("),
}


def test_every_planted_bug_is_found(tmp_path):
    space, target = space_of("equal phases", machine()), machine()
    right = space.lower(space.schedule(space.sample(np.random.default_rng(3), 1)[0]))
    check_bugs_are_found(right, BUGS, space.workload, target, tmp_path, count=0)

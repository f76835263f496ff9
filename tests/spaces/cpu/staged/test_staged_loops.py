"""The CPU template of several kernels, of which some are plain loops."""

from __future__ import annotations

import pytest

from tests.spaces.constant_programs import EDGES
from tests.spaces.cpu.loops.test_template import machine
from tests.spaces.cpu.native import check_sampled
from tilewright.spaces.cpu.staged.template import StagedLoops
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

SERVED = {
    "a loss with its mean": (
        '"l: int32[r](index < c); y = mean[r](logsumexp[c](x[r,c]) - x[r,l[r]])" r=6 c=20',
        ["rows", "rows"],
    ),
    "rows at the best places": (
        '"a[r] = argmax[c](x[r,c]); y[r,d] = w[a[r],d]" r=4 c=5 d=6',
        ["rows", "map"],
    ),
    "an embedding bag": (
        '"t: int32[b,j](index < 9); y[b,d] = mean[j](w[t[b,j],d])" b=3 j=4 d=8',
        ["map", "rows"],
    ),
    "a product of halves": (
        'matmul m=15 n=16 k=18 dtype=float16 epilogue="relu(x + b[n])"',
        ["loops", "thin_stream", "loops"],
    ),
    "weights of 8 bits": (
        '"w: int8; y[i,j] = sum[k](a[i,k] * w[k,j]) * s[j]" i=15 j=16 k=18',
        ["map", "thin_stream"],
    ),
    "quantised rows": (
        '"y: int8; m[i] = max[j](abs(x[i,j])); y[i,j] = 127 * x[i,j] / m[i]; -> y, m" i=9 j=30',
        ["rows", "loops"],
    ),
}
REFUSED = {
    "a sum of whole numbers": '"x: int32; y[r] = sum[c](x[r,c])" r=5 c=9',
    "whole numbers between": '"p[i,j] = i * 3000000 + j; y[i] = sum[j](p[i,j] * x[i])" i=9 j=5',
    "64 bits": '"x: float64; y: float64; y[i,j] = sum[k](x[i,k] * x[j,k])" i=5 j=5 k=6',
}


class TestStagedLoops(TemplateContract):
    template = StagedLoops

    def served(self):
        return [(workload(text), machine(2)) for text, _ in SERVED.values()]

    def refused(self):
        found = [(workload(text), machine()) for text in REFUSED.values()]
        return [*found, (workload(SERVED["an embedding bag"][0]), detect_target("cuda:sm_80"))]


@pytest.mark.parametrize("name", SERVED)
def test_parts_have_fast_kernels_where_there_are_any(name):
    text, parts = SERVED[name]
    (template,) = space_for(workload(text), machine()).templates.values()
    assert isinstance(template, StagedLoops)
    assert [each.name for each in template.templates] == parts


@pytest.mark.parametrize("name", SERVED)
def test_kernels_compute_the_program(name, tmp_path):
    w, target = workload(SERVED[name][0]), machine(3)
    check_sampled(Space(w, target, [StagedLoops(w, target)]), 3, 1, tmp_path)


def test_parts_along_entries_find_their_rows(tmp_path):
    """The definitions of these parts were missing, so that no kernel was linked."""
    w = workload(EDGES)
    check_sampled(space_for(w, machine()), 1, 0, tmp_path)

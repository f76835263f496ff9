"""The CUDA template of scans: its space, its rules and its quantities."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.kernels.test_scan_kernels import scan
from tests.spaces.cpu.scan.test_template import SCANS
from tilewright.spaces.cuda.scan.template import CudaScan
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.testing.targets import made_up_cpu
from tilewright.spaces.testing.template import checked_quantities, silent_rules
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")


def space_of(w: Workload) -> Space:
    return Space(w, H200, [CudaScan(w, H200)])


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize(("rows", "columns"), [(3, 40), (4096, 4096), (8, 1 << 20), (1, 7)])
def test_quantities_are_complete_and_possible(name, rows, columns):
    space = space_of(scan(name, rows, columns))
    checked_quantities(space, seed=0, schedules=60)
    for row in space.sample(np.random.default_rng(1), 4):
        kernel = space.lower(space.schedule(row))
        (launch,) = kernel.call.launches
        assert launch.shared_bytes <= H200.shared_per_block
        assert bool(kernel.call.workspace_bytes) == (space.schedule(row)["parallel_over"] != "rows")


def test_work_grows_with_columns():
    few, many = (
        checked_quantities(space_of(scan("maps around", 900, n)), 1, 64) for n in (300, 9000)
    )
    for name in ("flops", "instructions", "near_bytes"):
        assert np.median(many[name]) > np.median(few[name])


def test_every_rule_refuses_something_and_says_why():
    works = (scan("two", 3, 40), scan("down", 4000, 300), scan("prefixes", 3, 1 << 22))
    assert silent_rules([space_of(w) for w in works], 400) <= {"grid"}


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "no reduction over prefixes"),
        (workload("y[r,i] = sum[j: j <= i](x[r,j] * w[i])", r=4, i=8, j=8), "alike for all"),
        (workload("x: int32; " + SCANS["prefixes"], r=4, i=8, j=8), "whole numbers"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in str(CudaScan.why_not(w, H200))


def test_no_quadratic_kernel_serves_what_scans_do():
    found = serving(scan("maps around", 9, 40), H200)
    assert not isinstance(found, str)
    assert [template.name for template in found.templates] == ["scan"]


@pytest.mark.parametrize("target", [made_up_cpu(), H200], ids=str)
@pytest.mark.parametrize("kind", ["inclusive", "exclusive", "reverse"])
@pytest.mark.parametrize("over", [0, 1])
def test_gradients_of_scans_are_scans(target, kind, over):
    found = gradient(f"cumsum shape=24x40 over={over} kind={kind}", "x")
    own = serving(workload_of(found), target)
    assert not isinstance(own, str)
    assert [template.name for template in own.templates] == ["scan"]

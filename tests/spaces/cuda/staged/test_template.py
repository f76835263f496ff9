"""The CUDA template of several kernels: what it serves, its parts, and its kernels' memory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.kernel import WORKSPACE, Call
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target
from tilewright.spaces.testing.template import TemplateContract

H200, A100 = detect_target("cuda:sm_90a"), detect_target("cuda:sm_80")
GATED = "gated_matmul m=512 n=1024 k=256 dtype=bfloat16"
SERVED = {
    "gated": GATED,
    "gated, few rows": "gated_matmul m=16 n=1024 k=256 dtype=bfloat16",
    "gated, wide types": "gated_matmul m=64 n=96 k=80",
    "normalised": "rmsnorm_matmul m=512 n=1024 k=256 dtype=float16",
    "the largest logit": '"y[i] = argmax[j](sum[k](a[i,k] * b[j,k]))" i=512 j=640 k=64',
    "two outputs": '"s[i,j] = sum[k](a[i,k] * b[k,j]); m[i] = max[j](s[i,j] * s[i,j]); '
    'y[i,j] = a[i,j] / (1 + m[i]); -> m, y" i=12 j=10 k=10',
    "a projection of attention": '"p[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e]); '
    'y[i,f] = sum[e](p[i,e] * w[e,f])" i=128 j=128 d=64 e=64 f=96 dtype=bfloat16',
}
REFUSED = {
    "matmul m=8 n=8 k=8": "one kernel computes a product of matrices",
    "softmax r=8 c=8": "one kernel computes it",
    '"a: int8; y[i] = max[j](sum[k](a[i,k] * a[j,k]))" i=3 j=3 k=4': "nothing to cut",
    "gated_matmul m=8 n=8 k=8 dtype=float64": "nothing to cut",
}


def space_of(name: str, target=H200) -> Space:
    work = workload(SERVED[name])
    return Space(work, target, [CudaStaged(work, target)])


def calls(name: str, count: int, target=H200) -> list[Call]:
    space = space_of(name, target)
    rows = space.sample(np.random.default_rng(0), count)
    return [space.lower(space.schedule(row)).call for row in rows]


class TestStaged(TemplateContract):
    template = CudaStaged

    def served(self):
        work = [workload(text) for text in SERVED.values()]
        return [(w, target) for w in work for target in (H200, A100)]

    def refused(self):
        targets = [(workload(text), H200) for text in REFUSED]
        return [*targets, (workload(GATED), detect_target("cpu"))]


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_it_is_refused(text, reason):
    assert reason in str(CudaStaged.why_not(workload(text), H200))


PARTS = {
    "gated": (["hopper", "hopper"], ["mma", "mma"]),
    "gated, few rows": (["thin", "hopper"], ["thin", "mma"]),
    "gated, wide types": (["simt", "simt"], ["simt", "simt"]),
    "normalised": (["rows", "hopper"], ["rows", "mma"]),
    "the largest logit": (["simt", "rows"], ["simt", "rows"]),
    "a projection of attention": (["chained_hopper", "hopper"], ["chained", "mma"]),
}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_has_the_template_for_it(name):
    for target, parts in zip((H200, A100), PARTS[name], strict=True):
        (template,) = space_of(name, target).templates.values()
        assert isinstance(template, CudaStaged)
        assert [each.name for each in template.templates] == parts


def test_products_are_not_computed_as_rows_where_they_have_kernels():
    assert "rows" not in space_for(workload(GATED), H200).templates
    assert list(space_for(workload(GATED), A100).templates) == ["staged"]
    assert "C_sum is a product of matrices" in str(CudaRows.why_not(workload(GATED), H200))
    assert CudaRows.why_not(workload("softmax r=8 c=8"), H200) is None


def test_rows_that_a_product_needs_are_handed_on_in_its_dtype():
    for dtype, between in (
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
        ("float32", "float32"),
    ):
        work = workload(f"rmsnorm_matmul m=64 n=64 k=64 dtype={dtype}")
        parts = CudaStaged.cut(work, H200)
        assert not isinstance(parts, str)
        assert [output.dtype for output in parts[0].program.outputs] == [between]


def test_its_version_rises_with_those_of_its_parts():
    space = space_of("normalised")
    (staged,) = space.templates.values()
    assert isinstance(staged, CudaStaged)
    rows, hopper = (each.versioned for each in staged.templates)
    assert space.versions == {f"staged.2+{rows}+{hopper}"}


@pytest.mark.parametrize("name", PARTS)
def test_arrays_in_between_are_handed_on_and_lie_apart(name):
    for call in calls(name, 16):
        between = {
            b.name: b
            for launch in call.launches
            for b in launch.buffers
            if b.inside == WORKSPACE and b.name != WORKSPACE
        }
        assert between
        for launch in call.launches:
            assert {spec.operand for spec in launch.tensor_maps} <= {b.name for b in launch.buffers}
            shared = [b for b in launch.buffers if b.inside == WORKSPACE]
            for one, other in combinations([*between.values(), *shared], 2):
                apart = (
                    one.start + one.bytes <= other.start or other.start + other.bytes <= one.start
                )
                assert apart or one.name == other.name
            for buffer in shared:
                assert buffer.start % 128 == 0
                assert buffer.start + buffer.bytes <= call.workspace_bytes
        for name, buffer in between.items():
            uses = [b for launch in call.launches for b in launch.buffers if b.name == name]
            assert [b.start for b in uses] == [buffer.start] * len(uses)
            assert uses[0].written
            assert not uses[-1].written


def test_all_kernels_leave_the_same_bytes_zero():
    """Each part's own memory begins so that its zeros end where those of all others do."""
    ends = set()
    for call in calls("gated", 256):
        own = [b for launch in call.launches for b in launch.buffers if b.name == WORKSPACE]
        starts = [b.start for b in own]
        assert min([call.workspace_zeroed, *starts]) >= 0
        ends.add((len(own), len(set(starts)), call.workspace_zeroed > 0))
    assert {(0, 0, False), (1, 1, True), (2, 2, True)} <= ends

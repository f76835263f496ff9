"""The pairwise template of a GPU: its space, its rules, and what it refuses."""

from __future__ import annotations

import pytest

from tests.spaces.pairwise_programs import GRADIENTS, OTHERS, backward, other
from tilewright.spaces.cuda.pairwise.template import CudaPairwise
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.testing.template import TemplateContract, silent_rules
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

H200, A100 = cuda_target("sm_90a"), cuda_target("sm_80")
HALF = "bfloat16"


def served() -> list[Workload]:
    """All programs of sums over pairs, their factors in bfloat16."""
    return [*(backward(n, HALF) for n in GRADIENTS), *(other(n, HALF) for n in OTHERS)]


class TestCudaPairwise(TemplateContract):
    template = CudaPairwise

    def served(self) -> list[tuple[Workload, Target]]:
        targets = (H200, A100)
        return [(made, targets[n % 2]) for n, made in enumerate(served())]

    def refused(self) -> list[tuple[Workload, Target]]:
        texts = ["matmul m=8 n=8 k=8", "softmax r=8 c=8", "attention b=1 h=2 i=8 j=8 d=8"]
        unsaved = workload_of(gradient(f"attention b=1 h=2 i=8 j=8 d=8 dtype={HALF}", "q,k,v"))
        others = [unsaved, backward("plain")]
        found = [(made, H200) for made in (*map(workload, texts), *others)]
        return [*found, (backward("plain", HALF), detect_target("cpu"))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attention b=1 h=2 i=32 j=32 d=16", "needs factors of float16 or bfloat16"),
        (
            f"attention b=1 h=1 i=512 j=512 d=1024 dtype={HALF}",
            "bytes of shared memory|a thread needs",
        ),
    ],
)
def test_refusals_say_what_is_needed(text: str, words: str) -> None:
    made = workload_of(gradient(text, "q,k,v", "y,lse"))
    reason = str(CudaPairwise.why_not(made, A100))
    assert any(each in reason for each in words.split("|")), reason


def test_what_a_product_means_in_float32_is_not_rounded() -> None:
    text = "q: float32\ns[i,j] = sum[d](q[i,d] * k[j,d])\ny[i,e] = sum[j](s[i,j] * v[j,e])"
    made = workload(text, i=32, j=32, d=16, e=16, dtype=HALF)
    reason = "q[i, d] would be rounded to bfloat16, in a product that means float32"
    assert CudaPairwise.why_not(made, H200) == reason


def test_products_of_two_dtypes_of_16_bits_are_refused() -> None:
    text = "k: float16\ns[i,j] = sum[d](q[i,d] * k[j,d])\ny[i,e] = sum[j](s[i,j] * v[j,e])"
    made = workload(text, i=32, j=32, d=16, e=16, dtype=HALF)
    assert "products are of bfloat16, float16" in str(CudaPairwise.why_not(made, H200))


def test_every_rule_refuses_something_and_says_why() -> None:
    texts = ["attention b=1 h=2 i=40 j=40 d=40", "attention b=8 h=1 i=900 j=900 d=128"]
    works = [workload_of(gradient(f"{t} dtype={HALF}", "q,k,v", "y,lse")) for t in texts]
    assert not silent_rules([Space(made, H200, [CudaPairwise(made, H200)]) for made in works], 400)


def test_the_gradient_of_attention_has_this_template_alone() -> None:
    for target in (H200, A100):
        assert list(space_for(backward("groups", HALF), target).templates) == ["pairwise"]


def test_sums_along_one_side_are_one_pass() -> None:
    passes = {
        name: len(CudaPairwise(backward(name, HALF), H200).passes)
        for name in ("queries alone", "keys and values", "plain")
    }
    assert passes == {"queries alone": 1, "keys and values": 1, "plain": 2}

"""The chunked template of a GPU: its space, its rules, its quantities, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.kernels.test_chunked_kernels import CHUNKED, HALF, IN_ONE_SUM, recurrence
from tests.spaces.recurrent_programs import TEXTS
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.chunked.template import CudaChunked
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.derivation.work import flops_of_pairs
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.template import Template
from tilewright.spaces.testing.template import (
    TemplateContract,
    checked_quantities,
    silent_rules,
)
from tilewright.spaces.workloads.workload import Workload

H200, A100 = cuda_target("sm_90a"), cuda_target("sm_80")
SUM = "y[t,e] = sum[s: s <= t]"


def space_of(w: Workload) -> Space:
    return Space(w, H200, [CudaChunked(w, H200)])


class TestCudaChunked(TemplateContract):
    template = CudaChunked

    def served(self) -> list[tuple[Workload, Target]]:
        kinds, targets = (HALF, "float16"), (H200, A100)
        found = [
            (recurrence(name, kinds[n % 2]), targets[n // 2 % 2]) for n, name in enumerate(CHUNKED)
        ]
        return [*found, *((recurrence(name), H200) for name in IN_ONE_SUM)]

    def refused(self) -> list[tuple[Workload, Target]]:
        found = [
            (recurrence(name, HALF), H200) for name in TEXTS if name not in (*CHUNKED, *IN_ONE_SUM)
        ]
        return [*found, (recurrence("retention", HALF), detect_target("cpu"))]


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=16, n=16, k=16, dtype=HALF), "a product of matrices"),
        (workload("softmax", r=4, c=8), "made of one sum"),
        (recurrence("retention", "float32"), "needs factors of float16 or bfloat16"),
        (recurrence("averages"), "no product that is summed"),
        (recurrence("gated"), "decays differ along d; chunks share them"),
        (recurrence("selective"), "sums of several products"),
        (recurrence("linear attention, in one sum", "float16"), "too large for float16"),
        (recurrence("two inner axes"), "q[h, t, d] * r[t, n] would be rounded to bfloat16"),
        (
            workload(
                "y[t,e] = sum[s,d: s <= t](q[t,d] * k[s,d] * w[s] * v[s,e])",
                t=9,
                s=9,
                d=4,
                e=4,
                dtype=HALF,
            ),
            "w[t] would be rounded to bfloat16",
        ),
        (recurrence("two decays"), "decays differ along e; chunks share them"),
        (recurrence("linear attention", d=600), "a thread needs about"),
        (recurrence("linear attention", t=1 << 19, s=1 << 19), "524288 positions"),
        (
            workload(f"{SUM}(sum[d](q[t,d] * k[s,d]) * w[s])", t=9, s=9, d=4, e=4, dtype=HALF),
            "the same for all e",
        ),
        (
            workload(f"{SUM}(sum[d](q[t,d,e] * k[s,d]) * v[s,e])", t=9, s=9, d=4, e=4, dtype=HALF),
            "q[t, d, e] is of a score and of a lane at once",
        ),
        (
            workload(
                f"k: float32; {SUM}(sum[d](q[t,d] * k[s,d]) * v[s,e])",
                t=9,
                s=9,
                d=4,
                e=4,
                dtype=HALF,
            ),
            "k[t, d] would be rounded to bfloat16",
        ),
    ],
)
def test_refusals_say_why(w: Workload, words: str) -> None:
    assert words in str(CudaChunked.why_not(w, H200))


def test_every_rule_refuses_something_and_says_why() -> None:
    works = (
        recurrence("linear attention", t=9, s=9, d=300, e=16),
        recurrence("state space", h=40, t=3000, s=3000, d=128, e=128),
    )
    assert not silent_rules([space_of(w) for w in works], 400)


def test_quantities_are_possible_and_linear_in_positions() -> None:
    few, many = (
        checked_quantities(space_of(recurrence("state space", t=n, s=n, d=64)), 1, 40)
        for n in (1 << 10, 1 << 14)
    )
    for name in ("flops", "instructions", "near_bytes"):
        assert 12 < np.median(many[name]) / np.median(few[name]) < 20


@pytest.mark.parametrize("template", [CudaChained, ChainedHopper])
def test_quadratic_kernels_are_not_taken_for_linear_ones(template: type[Template]) -> None:
    w = recurrence("linear attention", h=4, t=4096, s=4096, d=64, e=64)
    found = checked_quantities(Space(w, H200, [template(w, H200)]), 1, 40)
    pairs = 4 * 4096 * 4097 // 2
    assert flops_of_pairs(w.program) == pairs * 2 * (64 + 64)
    assert found["flops"].min() > 0.9 * flops_of_pairs(w.program)


@pytest.mark.parametrize("name", CHUNKED)
def test_recurrences_are_served(name: str) -> None:
    found = serving(recurrence(name), H200)
    assert not isinstance(found, str)
    assert "chunked" in [template.name for template in found.templates]

"""The CUDA template over ranges: its space, its rules and its quantities."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.kernels.test_ragged_kernels import H200, ragged, scores, space_of
from tests.spaces.language.ragged_programs import BODIES, text_of
from tilewright.spaces.cuda.ragged.template import CudaRagged
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import serving
from tilewright.spaces.testing.template import checked_quantities, silent_rules


@pytest.mark.parametrize("name", BODIES)
def test_no_kernel_of_rectangles_serves_what_ranges_do(name):
    found = serving(ragged(name, True), H200)
    assert not isinstance(found, str)
    assert [template.name for template in found.templates] == ["ragged"]


def test_scores_of_entries_have_kernels_of_rows_beside():
    found = serving(scores("scores"), H200)
    assert not isinstance(found, str)
    assert {template.name for template in found.templates} == {"ragged", "rows"}


@pytest.mark.parametrize("name", BODIES)
def test_teams_share_entries_where_a_row_has_one_result(name):
    decisions = {d.name: d.values for d in CudaRagged(ragged(name), H200).decisions}
    whole = {"attention", "heads", "sparse times vector", "places", "places of edges"}
    assert ("entries" in decisions["parallel_over"]) == (name not in whole)


def test_quantities_are_possible_and_grow_with_entries():
    few, many = (
        checked_quantities(space_of(ragged("heads", entries=e)), 1, 64) for e in (300, 9000)
    )
    for name in ("flops", "instructions", "near_bytes"):
        assert np.median(many[name]) > np.median(few[name])


def test_a_long_row_keeps_the_teams_of_rows_waiting():
    text = text_of("mean", True, 50, ", skew=2.1")
    w = workload(text, r=5000, e=30000, c=32)
    population = space_of(w).sample(np.random.default_rng(0), 200)
    shared = np.array([space_of(w).schedule(p)["parallel_over"] == "entries" for p in population])
    imbalance = space_of(w).quantities(population)["imbalance"]
    assert np.median(imbalance[~shared]) > np.median(imbalance[shared])


def test_every_rule_refuses_something_and_says_why():
    works = (ragged("sparse times dense"), ragged("attention", c=200), ragged("mean", rows=5000))
    huge = ragged("heads", entries=1 << 24, h=40)
    assert not silent_rules([space_of(w) for w in (*works, huge)], 400)


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (workload("matmul", m=4, n=4, k=4), "a product of matrices"),
        (workload("softmax", r=4, c=8), "no sorted table and no pointers"),
        (workload(text_of("greatest") + "; z[r,c] = y[r,c] + r; -> z", r=5, e=9, c=4), "axes"),
        (workload("x: float64; y: float64; " + text_of("greatest"), r=5, e=9, c=4), "float64"),
        (workload(text_of("greatest").replace("ax[e]", "ax[e: e > 2]"), r=5, e=9, c=4), "bounds"),
    ],
)
def test_refusals_say_why(w, words):
    assert words in str(CudaRagged.why_not(w, H200))

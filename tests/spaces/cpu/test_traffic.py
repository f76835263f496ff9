"""What caches hold of rows that lie apart, and of what others share with them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.spaces.cpu.machine import this_cpu
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.spaces.cpu.traffic import line_turns, middle_reach, near_reach, stays_far
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

TARGET = dataclasses.replace(
    this_cpu(), l1_bytes=48 << 10, l2_bytes=2 << 20, isa="avx512", vector_bytes=64
)


@pytest.mark.parametrize(
    ("run", "apart", "share"),
    [
        (64, 64, 1),  # one after the other
        (128, 3072, 1 / 8),  # begin at four places of a page
        (128, 4096, 1 / 32),  # all at the same
        (128, 12288, 1 / 32),
        (128, 9216, 1 / 8),
        (4096, 8192, 1),
    ],
)
def test_runs_reach_the_sets_in_which_they_begin(run, apart, share):
    assert near_reach(np.array(run), apart) == share
    assert middle_reach(np.array(run), apart) == share / (2 if apart >= 4096 else 1)


def test_lines_come_once_unless_more_rows_share_a_set_than_it_has_ways_for():
    found = {apart: line_turns(TARGET, np.array([4, 9, 10, 14]), apart) for apart in (3072, 4096)}
    assert found[3072].tolist() == [1, 1, 1, 1]
    assert found[4096].tolist() == [1, 1, 16, 16]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("matmul", {"m": 128, "k": 512}),
        ("grouped_matmul", {"t": 512, "k": 512, "experts": 4}),
    ],
)
def test_rows_a_page_apart_are_read_again_where_they_lie_and_not_when_packed(name, sizes):
    moved = {}
    for n in (1024, 1040):
        space = space_for(workload(name, n=n, **sizes), TARGET)
        template = next(iter(space.templates))
        rows = space.sample(np.random.default_rng(0), 4096)
        values = space.decision_columns(rows)
        found = space.quantities(rows)
        each = (found["near_bytes"] + found["middle_bytes"]) / n
        for packed in (False, True):
            chosen = (values[f"{template}.pack_right"] == packed) & np.isfinite(each)
            moved[n, packed] = each[chosen].min()
    assert moved[1024, False] > 1.4 * moved[1040, False]
    assert moved[1024, True] < 1.1 * moved[1040, True]


@pytest.mark.parametrize(
    ("l3", "cores", "most"),
    [
        (32 << 20, 16, 24 << 20),  # three quarters of what is there
        (260 << 20, 64, 195 << 20),
        (260 << 20, 2, 24 << 20),  # of a processor of which this machine has two cores
    ],
)
def test_a_cache_of_a_whole_processor_is_not_that_of_some_of_its_cores(l3, cores, most):
    target = dataclasses.replace(TARGET, l3_bytes=l3, cores=cores)
    assert stays_far(target, most)
    assert not stays_far(target, most + 1)


@pytest.mark.parametrize(
    ("text", "decision", "streamed"),
    [("y[j, i] = x[i, j]", "streaming_stores", True), ("softmax", "stores", "streaming")],
)
def test_results_that_leave_all_caches_are_estimated_to_be_written_past_them(
    text, decision, streamed
):
    """Stores into the caches would read their lines first: a third more of what is moved."""
    target = dataclasses.replace(TARGET, l3_bytes=260 << 20, cores=2)
    names = ("r", "c") if text == "softmax" else ("i", "j")

    def chosen(size):
        work = workload(text, **dict.fromkeys(names, size))
        space = space_for(work, target)
        rows = space.sample(np.random.default_rng(0), 400)
        seconds = AnalyticModel().latency(space, rows)
        least = space.quantities(rows)["main_bytes"] / work.least_bytes
        decided = np.array([space.schedule(row).values[decision] == streamed for row in rows])
        return decided[np.argmin(seconds)], least[~decided]

    best, moved = chosen(4096)
    assert best
    assert (moved == 1.5).all()
    _, moved = chosen(1024)
    assert (moved == 1).all()

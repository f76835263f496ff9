"""Stages of least cost, against all partitions of small graphs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.scheduler.torch.stages.planning import (
    Limits,
    Stage,
    TooWideError,
    planned,
)

Before = list[set[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Before:
    """What each of up to six nodes waits for."""
    count = draw(st.integers(1, 6))
    return [{a for a in range(b) if draw(st.integers(0, 2)) == 0} for b in range(count)]


def partitions(
    before: Before, limits: Limits, done: frozenset[int] = frozenset()
) -> Iterator[list[Stage]]:
    """All ways to run what is not done yet, the next stage first."""
    left = [node for node in range(len(before)) if node not in done]
    if not left:
        yield []
    for bits in range(1, 1 << len(left)):
        chosen = {node for place, node in enumerate(left) if bits >> place & 1}
        if any(before[node] - done - chosen for node in chosen):
            continue
        stage = components(before, chosen)
        if len(stage) <= limits.groups and all(len(group) <= limits.nodes for group in stage):
            for rest in partitions(before, limits, done | chosen):
                yield [stage, *rest]


def components(before: Before, chosen: set[int]) -> Stage:
    groups: list[set[int]] = []
    for node in sorted(chosen):
        near = [g for g in groups if before[node] & g]
        groups = [g for g in groups if g not in near] + [{node}.union(*near)]
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def priced(seed: int):
    """A cost of stages that has no structure at all."""
    return lambda stage: random.Random(f"{seed} {stage}").uniform(1, 2) * max(map(len, stage))


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_no_partition_costs_less(before: Before, groups: int, nodes: int, seed: int) -> None:
    limits, cost = Limits(groups, nodes), priced(seed)
    asked: list[Stage] = []
    found = planned(before, lambda stage: (asked.append(stage), cost(stage))[1], limits)
    least = min(sum(map(cost, stages)) for stages in partitions(before, limits))
    assert found in list(partitions(before, limits))
    assert sum(map(cost, found)) == pytest.approx(least)
    assert len(asked) == len(set(asked))


def test_branches_of_equal_length_run_side_by_side() -> None:
    """As one stage, if that costs no more than its longest group."""
    before = [set(), {0}, {0}, {1}, {2}, {3, 4}]
    assert planned(before, lambda s: 1 + max(map(len, s)), Limits(2, 2)) == [
        ((0,),),
        ((1, 3), (2, 4)),
        ((5,),),
    ]
    assert all(len(s) == 1 for s in planned(before, lambda s: 9 ** len(s), Limits(2, 2)))


def test_a_graph_may_be_too_wide() -> None:
    with pytest.raises(TooWideError, match="more than 100 sets"):
        planned([set() for _ in range(20)], lambda _: 1.0, Limits(2, sets=100))

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.costmodel.dataset import group_examples
from tilewright.costmodel.testing.toys import examples, points, product, toy_space
from tilewright.spaces.errors import InputError
from tilewright.spaces.testing.targets import made_up_cpu


def test_examples_are_grouped_by_workload_and_target():
    machines = [made_up_cpu(), made_up_cpu(threads=2)]
    spaces = [toy_space(product(m=m), machine) for m in (256, 512) for machine in machines]
    known = [e for space in spaces for e in examples(space, points(space, 10))]
    groups, skipped = group_examples(known, toy_space)
    assert skipped == 0
    assert {g.name for g in groups} == {(s.workload.key, s.target.fingerprint) for s in spaces}
    assert sum(len(g.latency) for g in groups) == len(known)


def test_scores_are_best_over_latency_and_failures_zero():
    space = toy_space(product(), made_up_cpu())
    known = examples(space, points(space, 30), failing=4)
    (group,), _ = group_examples(known, toy_space)
    best = min(e.latency for e in known if e.latency is not None)
    by_schedule = {e.schedule: e.latency for e in known}
    for row, score in zip(group.population, group.score, strict=True):
        latency = by_schedule[space.schedule(row)]
        assert score == (0.0 if latency is None else best / latency)
    assert group.score.max() == 1.0


def test_a_schedule_measured_twice_counts_once_with_its_lowest_latency():
    space = toy_space(product(), made_up_cpu())
    (first,) = examples(space, points(space, 1))
    again = [replace(first, latency=s) for s in (2.0, None, 1.0, 3.0)]
    (group,), _ = group_examples(again, toy_space)
    assert group.latency.tolist() == [1.0]


def test_only_failures_score_zero():
    space = toy_space(product(), made_up_cpu())
    (group,), _ = group_examples(examples(space, points(space, 5), failing=1), toy_space)
    assert not group.score.any()
    assert np.isnan(group.latency).all()


def test_a_workload_that_no_template_serves_any_more_is_skipped():
    def only_squares(workload, machine):
        if len(set(workload.extents.values())) > 1:
            raise InputError("no template serves it")
        return toy_space(workload, machine)

    spaces = [toy_space(product(m=m), made_up_cpu()) for m in (256, 512)]
    known = [e for space in spaces for e in examples(space, points(space, 10))]
    (group,), skipped = group_examples(known, only_squares)
    assert group.space.workload == spaces[1].workload
    assert skipped == sum(e.workload == spaces[0].workload for e in known)

"""Schedules that were the best of similar cases: a short list to try where there is no time for
more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from experiments.attention.cases import CASES, AttentionCase


def distance(a: AttentionCase, b: AttentionCase) -> tuple[float, ...]:
    """Return how unlike two cases are: whether one has few queries, by heads' sizes, what their
    scores are, how often their lengths differ by two, and whatever else."""
    few = (a.queries == a.length) != (b.queries == b.length)
    work = math.log2(a.length * a.batch / (b.length * b.batch))
    words = len(set(a.form.split()) ^ set(b.form.split()))
    group = abs(math.log2(a.heads / a.kv_heads) - math.log2(b.heads / b.kv_heads))
    return (few, abs(a.depth - b.depth), abs(work) + words + group, a.dtype != b.dtype)


def best_of_similar(case: AttentionCase, results: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the schedules of each template that were the two best of other cases, those of the
    most similar case first."""
    rows = [(c, results[c.name]) for c in CASES if c.name in results]
    rows.sort(key=lambda each: distance(case, each[0]))
    found: dict[str, list[Any]] = {}
    for _, row in rows:
        for name, each in row["templates"].items():
            own = found.setdefault(name, [])
            own += [t["values"] for t in each["tried"][:2] if t["values"] not in own]
    return found

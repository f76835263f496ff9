"""Rules that follow from others, to be judged sooner: what leaves later decisions no choice.

A space makes its decisions one after the other and judges a rule once all that it reads is
decided. Where a rule reads many decisions, most of what comes to it is already doomed. What only
grows with later decisions is judged as if these took their least demanding values
(:func:`judged_early`); of few decisions, all that they can become is tabled (:func:`foresee`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.schedule import Value
from tilewright.spaces.template import Decision, Rule


def judged_early(
    rules: Sequence[Rule], known: Sequence[str], least: Mapping[str, Value]
) -> list[Rule]:
    """Return ``rules`` as soon as the decisions ``known`` are made; others are as in ``least``."""

    def filled(c: Any) -> dict[str, Any]:
        return {**least, **{name: c[name] for name in known}}

    def early(rule: Rule) -> Rule:
        return Rule(
            rule.name,
            tuple(known),
            lambda c: rule.holds(filled(c)),
            lambda c: rule.explain({**least, **c}),
        )

    return [early(rule) for rule in rules]


def below(
    name: str,
    reads: Sequence[str],
    size: Callable[[Any, Sequence[str]], Any],
    limit: int,
    explain: Callable[[Any, Sequence[str]], str],
    least: int = 1,
) -> list[Rule]:
    """Make rules that keep a ``size`` below a ``limit``. The first judges by the ``least`` first
    decisions of ``reads``, and each further rule by one decision more: the size only grows with
    them. Both functions take the decisions' columns and the names that are known.
    """

    def rule(names: Sequence[str]) -> Rule:
        return Rule(
            name,
            tuple(names),
            lambda c: size(c, names) < limit,
            lambda c: explain(c, names),
        )

    return [rule(reads[:known]) for known in range(least, len(reads) + 1)]


def foresee(
    decisions: Sequence[Decision], rules: Sequence[Rule], known: Sequence[int]
) -> list[Rule]:
    """Find, for each n in ``known``, a rule that allows a choice of the first n decisions only if
    some completion satisfies every rule over ``decisions``."""
    names = [decision.name for decision in decisions]
    columns = {  # the last has the slowest axis, along which NumPy reduces whole blocks at once
        decision.name: np.array(decision.values).reshape(_along(i, len(decisions)))
        for i, decision in enumerate(reversed(decisions))
    }
    extents = {decision.name: len(decision.values) for decision in decisions}
    assert prod(extents.values()) < 1 << 21  # the table must stay small
    judging = [rule for rule in rules if set(names).issuperset(rule.reads)]
    judging.sort(key=lambda rule: prod(extents[name] for name in rule.reads))
    possible: np.ndarray = np.ones([1] * len(names), dtype=bool)  # it grows as far as rules ask for
    for rule in judging:
        possible = possible & np.asarray(rule.holds(columns), dtype=bool)
    found = []
    for count in sorted(known, reverse=True):
        possible = np.asarray(possible.any(axis=tuple(range(possible.ndim - count))))
        left = np.broadcast_to(possible.T, tuple(extents.values())[:count])
        found.append(_rule(decisions, left))
    return found[::-1]


def _rule(decisions: Sequence[Decision], left: np.ndarray) -> Rule:
    """Return the same for one number; ``left`` has an axis for each decision that is known."""
    names = [decision.name for decision in decisions]
    known = left.ndim
    reads, rest = tuple(names[:known]), names[known:]
    positions = [_positions(decision) for decision in decisions[:known]]

    def holds(c: Any) -> Any:
        return left[tuple(at(c[name]) for at, name in zip(positions, reads, strict=True))]

    def explain(c: Mapping[str, Any]) -> str:
        decided = ", ".join(f"{name}={c[name]}" for name in reads)
        return f"{decided} leaves no values of {', '.join(rest)} that keep the other rules"

    return Rule(f"after_{reads[-1]}", reads, holds, explain, implied=True)


def _along(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(-1 if i == axis else 1 for i in range(rank))


def _positions(decision: Decision) -> Callable[[Any], Any]:
    """Map values to their numbers, element by element."""
    values = np.array(decision.values)
    order = np.argsort(values)
    return lambda column: order[np.searchsorted(values[order], column)]

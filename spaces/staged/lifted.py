"""The decisions, rules and quantities of several templates as those of one.

A decision, or a rule, of part 2 has its own name and this number, such as ``tile_rows_2``. Parts
that are alike may share the decisions of one of them: ``numbers`` say whose each has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from tilewright.spaces.quantities import QUANTITIES
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.template import Columns, Decision, Rule, Template

T = TypeVar("T")

LARGEST = frozenset(
    {
        *("registers", "register_fraction", "near_footprint", "near_fraction"),
        *("middle_footprint", "middle_fraction", "far_fraction", "imbalance"),
    }
)
"""Quantities of which the largest part's counts."""
LEAST = frozenset(
    {
        *("parallelism", "worker_fraction", "independent_chains", "vector_fraction"),
        *("intensity", "main_loop_trips"),
    }
)
"""Quantities of which the least part's counts. All others add up."""


def decisions(parts: Sequence[Template], numbers: Sequence[int]) -> tuple[Decision, ...]:
    """Collect the decisions of all parts."""
    return tuple(
        Decision(_numbered(decision.name, number), decision.values)
        for own, (part, number) in enumerate(zip(parts, numbers, strict=True), 1)
        if own == number
        for decision in part.decisions
    )


def rules(parts: Sequence[Template], numbers: Sequence[int]) -> tuple[Rule, ...]:
    """Collect the rules of all parts."""
    return tuple(
        _rule(rule, part, own, number)
        for own, (part, number) in enumerate(zip(parts, numbers, strict=True), 1)
        for rule in part.rules
    )


def schedules(
    parts: Sequence[Template], numbers: Sequence[int], schedule: Schedule
) -> list[Schedule]:
    """Split a schedule of all parts into a schedule for each."""
    return [
        Schedule(part.name, tuple(_own(schedule.values, _names(part), number).items()))
        for part, number in zip(parts, numbers, strict=True)
    ]


def quantities(
    parts: Sequence[Template], numbers: Sequence[int], columns: Columns
) -> dict[str, np.ndarray]:
    """Combine the quantities of all parts."""
    found = [
        part.quantities(_own(columns, _names(part), number))
        for part, number in zip(parts, numbers, strict=True)
    ]
    return {name: reduce(_joining(name), (each[name] for each in found)) for name in QUANTITIES}


def _joining(name: str) -> Callable[[Any, Any], Any]:
    if name in LARGEST:
        return np.maximum
    return np.minimum if name in LEAST else np.add


def _rule(rule: Rule, part: Template, own: int, number: int) -> Rule:
    return Rule(
        name=_numbered(rule.name, own),
        reads=tuple(_numbered(name, number) for name in rule.reads),
        holds=lambda c: rule.holds(_own(c, rule.reads, number)),
        explain=lambda c: f"kernel {own}: {rule.explain(_own(c, _names(part), number))}",
        implied=rule.implied,
    )


def _names(part: Template) -> list[str]:
    return [decision.name for decision in part.decisions]


def _own(values: Mapping[str, T], names: Iterable[str], number: int) -> dict[str, T]:
    """Select one part's values, under the names that it uses."""
    return {name: values[_numbered(name, number)] for name in names}


def _numbered(name: str, number: int) -> str:
    return f"{name}_{number}"

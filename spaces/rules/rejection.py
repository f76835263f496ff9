"""Count the raw points of a space that each of its rules rejects.

Rules that only foresee the rejections of others are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.space import Space
from tilewright.spaces.template import Template

DRAWS = 10_000  # raw points of each template


@dataclass(frozen=True)
class Rejection:
    """A rule's share of refusals: of ``drawn`` raw points it ``rejected`` some, and no other rule
    did for those ``alone``; ``example`` says why it refused one of them.
    """

    rule: str
    rejected: int
    alone: int
    example: str


@dataclass(frozen=True)
class Rejections:
    """The refusals of one template: of ``drawn`` raw points, ``valid`` ones keep all rules. A raw
    point has a random value for each decision, all values with equal probability.
    """

    template: str
    drawn: int
    valid: int
    rules: list[Rejection]


def rejections(space: Space, drawn: int = DRAWS, seed: int = 0) -> list[Rejections]:
    """Count the rejections of each template's rules; the rule that rejects most comes first."""
    generator = np.random.default_rng(seed)
    return [_of(template, drawn, generator) for template in space.templates.values()]


def _of(template: Template, drawn: int, generator: np.random.Generator) -> Rejections:
    columns = {
        decision.name: np.array(decision.values)[
            generator.integers(len(decision.values), size=drawn)
        ]
        for decision in template.decisions
    }
    refused: dict[str, np.ndarray] = {}
    examples: dict[str, str] = {}
    for rule in (rule for rule in template.rules if not rule.implied):
        with np.errstate(all="ignore"):  # a rule may ask of a point what only others make sense of
            broken = ~np.broadcast_to(np.asarray(rule.holds(columns), dtype=bool), (drawn,))
        refused[rule.name] = refused.get(rule.name, False) | broken
        if broken.any() and rule.name not in examples:
            examples[rule.name] = rule.explain(_point(columns, int(broken.argmax())))
    times = np.sum([*refused.values(), np.zeros(drawn, bool)], axis=0)
    rules = [
        Rejection(name, int(broken.sum()), int((broken & (times == 1)).sum()), examples[name])
        for name, broken in refused.items()
        if broken.any()
    ]
    rules.sort(key=lambda each: -each.rejected)
    return Rejections(template.name, drawn, int((times == 0).sum()), rules)


def _point(columns: Mapping[str, np.ndarray], row: int) -> dict[str, Any]:
    return {name: values[row].item() for name, values in columns.items()}

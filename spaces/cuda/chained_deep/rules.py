"""Rules of the deep chained template, beside those of any chained one."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.chained.rules import chained_rules
from tilewright.spaces.cuda.chained_deep.sizes import DeepSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Decision, Rule


def deep_rules(
    sizes: DeepSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    rules = chained_rules(sizes, target, decisions)
    return (*rules, *[_matrices_in_time(sizes)] * bool(sizes.width))


def _matrices_in_time(sizes: DeepSizes) -> Rule:
    """Return the rule by which matrices, copied with the first step, arrive before the last one."""
    return Rule(
        "matrices_in_time",
        ("depth_step", "stages"),
        lambda c: c["stages"] <= sizes.steps(c),
        lambda c: (
            f"the matrices of a tile come with its first step and are there {c['stages'] - 1} "
            f"steps later; there are {sizes.steps(c)} of {c['depth_step']} terms"
        ),
    )

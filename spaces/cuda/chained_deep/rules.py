"""What rules out a schedule of a deep chained kernel, beside what does so for any chained one."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.chained.rules import chained_rules
from tilewright.spaces.cuda.chained_deep.sizes import DeepSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Decision, Rule


def deep_rules(
    sizes: DeepSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the template."""
    rules = chained_rules(sizes, target, decisions)
    return (*rules, *[_matrices_in_time(sizes)] * bool(sizes.width))


def _matrices_in_time(sizes: DeepSizes) -> Rule:
    """What comes with a tile's first step is there before its last one."""
    return Rule(
        "matrices_in_time",
        ("depth_step", "stages"),
        lambda c: c["stages"] <= sizes.steps(c),
        lambda c: (
            f"the matrices of a tile come with its first step and are there {c['stages'] - 1} "
            f"steps later; there are {sizes.steps(c)} of {c['depth_step']} terms"
        ),
    )

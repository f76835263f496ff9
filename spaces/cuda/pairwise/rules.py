"""Rules of the pairwise template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.pairwise.passes import Pass
from tilewright.spaces.cuda.pairwise.sizes import PassSizes
from tilewright.spaces.cuda.residency import storage_rules
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import judged_early
from tilewright.spaces.template import Decision, Rule

SIZES = ("fragments", "tile", "warps", "stages", "blocks_per_sm")
"""The decisions of a pass about sizes, in the order in which they are made."""


def of_pass(of: Pass, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions of one pass, by their names without that of the pass."""
    prefix = f"{of.name}_"
    own = ((name, value) for name, value in columns.items() if name.startswith(prefix))
    return {name.removeprefix(prefix): value for name, value in own}


def pass_rules(of: Pass, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return all rules of a pass; they read its ``decisions``."""
    sizes = PassSizes(of)
    least = of_pass(of, {decision.name: decision.values[0] for decision in decisions})
    rules = _tile_rules(sizes)
    for known in range(1, len(SIZES) + 1):
        rules += judged_early(storage_rules(sizes, target), SIZES[:known], least)
    return [_named(of, rule) for rule in rules]


def why_no_room(of: Pass, target: CudaTarget, decisions: Sequence[Decision]) -> str | None:
    """Return why even the smallest tiles of a pass have no room; None if they have."""
    least = of_pass(of, {decision.name: decision.values[0] for decision in decisions})
    rules = storage_rules(PassSizes(of), target)
    return next((rule.explain(least) for rule in rules if not rule.holds(least)), None)


def _named(of: Pass, rule: Rule) -> Rule:
    """Return the same rule of decisions by their whole names."""
    return Rule(
        f"{of.name}_{rule.name}",
        tuple(f"{of.name}_{name}" for name in rule.reads),
        lambda c: rule.holds(of_pass(of, c)),
        lambda c: f"where {of.name}s stay, {rule.explain(of_pass(of, c))}",
        rule.implied,
    )


def _tile_rules(sizes: PassSizes) -> list[Rule]:
    of = sizes.of
    return [
        Rule(
            "stay_size",
            ("fragments", "warps"),
            lambda c: (c["fragments"] * c["warps"] == 1) | (sizes.stay(c) < 2 * of.stay_count),
            lambda c: (
                f"a block of {sizes.stay(c)} points is twice the {of.stay_count} of a product"
            ),
        ),
        Rule(
            "tile_size",
            ("tile",),
            lambda c: (c["tile"] == FRAGMENT) | (c["tile"] < 2 * of.pass_count),
            lambda c: f"a tile of {c['tile']} points is twice the {of.pass_count} of a product",
        ),
        Rule(
            "stages_filled",
            ("tile", "stages"),
            lambda c: (c["stages"] == 2) | (c["stages"] <= sizes.pass_tiles(c)),
            lambda c: (
                f"{c['stages']} stages are more than the {sizes.pass_tiles(c)} tiles there are"
            ),
        ),
    ]

"""Names of decisions in earlier versions, and today's names for them.

Records, exports and models that were written before 0.1.0 use the earlier names. Whatever reads
them renames the decisions once, by these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Kept = TypeVar("Kept")

TEMPLATES = frozenset(
    {
        *("chained", "chained_deep", "chained_hopper", "hopper", "hopper_pairs", "hopper_reduced"),
        *("kept", "loops", "map", "mma", "packed", "rows", "simt", "staged", "staged_loops"),
        *("low_bit", "ragged", "thin", "windows", "winograd"),
    }
)
"""The templates whose decisions were renamed; templates of others may use any names."""

NUMBERED = frozenset({"packed", "staged", "staged_loops"})
"""Templates of several kernels, whose decisions end in the kernel's number: ``split_2``."""

RENAMED: Mapping[str, str] = {
    "across": "coarsened_axis",
    "ahead": "prefetch",
    "beside": "chain_overlap",
    "block_squares": "block_tiles",
    "blocks": "tile_scheduler",
    "borders": "padding",
    "common": "row_invariants",
    "exchange": "merge",
    "grid": "tile_scheduler",
    "group": "raster_group",
    "held": "intermediates",
    "hold": "row_storage",
    "outputs": "output_tile",
    "own_keys": "skip_per_warpgroup",
    "promotion": "promotion_interval",
    "queries": "query_storage",
    "reads": "load_order",
    "residency": "blocks_per_sm",
    "scores": "key_layout",
    "section": "head_group",
    "share": "reduction_threads",
    "shared": "parallel_over",
    "sharing": "reduction_threads",
    "slices": "row_fragments",
    "small": "small_operand",
    "spared": "idle_clusters",
    "split": "splits",
    "spread": "copy_spread",
    "staging": "store_buffers",
    "store": "store_path",
    "straight": "register_transpose",
    "stream": "streaming_stores",
    "streams": "evict_first",
    "swapped": "swap_ab",
    "teams": "warp_splits",
    "trimmed_to": "tail_rows",
    "turns": "coarsening",
    "unpack": "convert",
    "values": "value_layout",
    "weights": "weight_dtype",
}
"""Earlier name to today's. No name of today is an earlier one: renaming twice changes nothing."""


def present_name(template: str, decision: str) -> str:
    """Return today's name of a template's decision."""
    if template not in TEMPLATES:
        return decision
    name, line, number = decision.rpartition("_")
    if template in NUMBERED and number.isdecimal():
        return f"{RENAMED.get(name, name)}{line}{number}"
    return RENAMED.get(decision, decision)


def present_decisions(template: str, decisions: Mapping[str, Kept]) -> dict[str, Kept]:
    """Return the decisions of a schedule under today's names, in their order."""
    return {present_name(template, name): value for name, value in decisions.items()}


def present_schedule(schedule: object) -> Any:
    """Return the JSON of a schedule under today's names; anything malformed stays as it is."""
    if not isinstance(schedule, Mapping):
        return schedule
    template, decisions = schedule.get("template"), schedule.get("decisions")
    if not isinstance(template, str) or not isinstance(decisions, Mapping):
        return schedule
    if not all(isinstance(name, str) for name in decisions):
        return schedule
    return {**schedule, "decisions": present_decisions(template, decisions)}


def present_feature(feature: str) -> str:
    """Today's name of a cost model's feature: those of decisions are ``TEMPLATE.DECISION``."""
    template, dot, decision = feature.partition(".")
    return f"{template}{dot}{present_name(template, decision)}"

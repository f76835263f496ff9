"""Rules of the chunked template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.chunked.sizes import ChunkSizes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.residency import storage_rules
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import judged_early
from tilewright.spaces.template import Decision, Rule

ENOUGH = 8
"""Blocks of each multiprocessor that leave nothing to segments."""
SIZES = ("warps", "chunk", "fragments", "stages", "blocks_per_sm")
"""The decisions about a block, in the order in which they are made: registers and shared memory
grow with all but the first, as warps share the scores."""


def chunked_rules(
    sizes: ChunkSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    rules = [_idle_warps(sizes), _columns(sizes), _long_chunk(sizes), _stages_filled(sizes)]
    for known in range(1, len(SIZES) + 1):
        rules += judged_early(storage_rules(sizes, target), SIZES[:known], _least(decisions))
    return (*rules, _full_segments(sizes), _many_segments(sizes, target))


def why_no_room(sizes: ChunkSizes, target: CudaTarget, decisions: Sequence[Decision]) -> str | None:
    """Return why even the smallest tiles have no room; None if they have."""
    least = _least(decisions)
    rules = storage_rules(sizes, target)
    return next((rule.explain(least) for rule in rules if not rule.holds(least)), None)


def _least(decisions: Sequence[Decision]) -> dict[str, int | str]:
    return {decision.name: decision.values[0] for decision in decisions}


def _idle_warps(sizes: ChunkSizes) -> Rule:
    return Rule(
        "idle_warps",
        ("chunk", "warps"),
        lambda c: c["warps"] <= (c["chunk"] // FRAGMENT) ** 2,
        lambda c: f"{c['warps']} warps share {(c['chunk'] // FRAGMENT) ** 2} fragments of scores",
    )


def _columns(sizes: ChunkSizes) -> Rule:
    width = sizes.view.width.extent
    return Rule(
        "columns",
        ("warps", "fragments"),
        lambda c: (sizes.columns(c) == FRAGMENT) | (sizes.columns(c) < 2 * width),
        lambda c: f"a block of {sizes.columns(c)} columns is twice the {width} there are",
    )


def _long_chunk(sizes: ChunkSizes) -> Rule:
    extent = sizes.view.key.extent
    return Rule(
        "long_chunk",
        ("chunk",),
        lambda c: (c["chunk"] == FRAGMENT) | (c["chunk"] < 2 * extent),
        lambda c: f"a chunk of {c['chunk']} positions is twice the {extent} there are",
    )


def _full_segments(sizes: ChunkSizes) -> Rule:
    return Rule(
        "full_segments",
        ("chunk", "segments"),
        lambda c: (c["segments"] - 1) * sizes.segment_chunks(c) < sizes.chunks(c),
        lambda c: (
            f"{c['segments']} segments of {sizes.segment_chunks(c)} chunks; there are "
            f"{sizes.chunks(c)}"
        ),
    )


def _many_segments(sizes: ChunkSizes, target: CudaTarget) -> Rule:
    most = ENOUGH * target.multiprocessors
    return Rule(
        "many_segments",
        ("warps", "fragments", "segments"),
        lambda c: (c["segments"] == 1) | (sizes.blocks(c) * c["segments"] <= most),
        lambda c: (
            f"{c['segments']} segments of {sizes.blocks(c)} blocks; more than {most} blocks keep "
            "the GPU busy without"
        ),
    )


def _stages_filled(sizes: ChunkSizes) -> Rule:
    return Rule(
        "stages_filled",
        ("chunk", "stages"),
        lambda c: (c["stages"] == 2) | (c["stages"] <= sizes.chunks(c)),
        lambda c: f"{c['stages']} stages are more than the {sizes.chunks(c)} chunks there are",
    )

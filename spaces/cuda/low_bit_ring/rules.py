"""The rules for schedules of products with packed codes that stream through rings, each with the
sentence that it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.spaces.cuda.blocks.rules import MOST_THREADS
from tilewright.spaces.cuda.low_bit.pairs import BYTE, is_exact
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.cuda.residency import BLOCK_SHARED, shared_memory
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.tree import Read
from tilewright.spaces.template import Rule

WARPS = 4
"""Warps of a warpgroup."""
BLOCK = ("tile_rows", "splits", "warp_tiles", "warp_columns")
DEPTH = ("tile_rows", "splits", "stage_depth")
MEMORY = (*BLOCK, "warp_depth", "stages", "stage_depth", "scales")


def ring_rules(
    sizes: Callable[[Mapping[str, Any]], RingSizes], target: CudaTarget, has_warpgroups: bool
) -> tuple[Rule, ...]:
    """Return all rules of the template; there may be a choice to multiply by warpgroups."""
    whole = sizes({})

    def allowed(c: Mapping[str, Any]) -> Any:
        held = sizes(c).threads * sizes(c).blocks_per_sm
        each = target.registers_per_multiprocessor // held
        return np.minimum(each, target.registers_per_thread)

    ways = ("multiply",) if has_warpgroups else ()
    held = ("blocks_per_sm",) if whole.segments else ()
    rules = (
        *(_of_warpgroups(sizes) if has_warpgroups else ()),
        *(_of_residents(sizes, target) if whole.segments else ()),
        *_of_tiles(sizes, min(MOST_THREADS, target.threads_per_block)),
        *_of_depth(sizes),
        Rule(
            "one_pass",
            BLOCK,
            lambda c: (c["splits"] == 1) | (sizes(c).passes == 1),
            lambda c: f"{sizes(c).passes} passes of blocks that share columns; allowed: 1",
        ),
        shared_memory(
            MEMORY,
            lambda c: sizes(c).shared_bytes,
            target,
        ),
        Rule(
            "registers",
            (*BLOCK, *ways, *held, "warp_depth", "stage_depth", "interleave", "scales"),
            lambda c: sizes(c).registers <= allowed(c),
            lambda c: f"a thread needs about {sizes(c).registers} registers; allowed: {allowed(c)}",
        ),
    )
    if _has_scales_of_halves(whole.product):
        return rules
    early = Rule(
        "range_of_scales",
        ("scales",),
        lambda c: c["scales"] == "late",
        lambda c: "scales before products may be beyond the range of float16; allowed: late",
    )
    return (*rules, early)


def _of_tiles(sizes: Callable[[Mapping[str, Any]], RingSizes], threads: int) -> tuple[Rule, ...]:
    """Return the rules of the tiles of columns that warps share, of at most so many ``threads``."""
    tiles = sizes({}).tiles
    return (
        Rule(
            "threads",
            ("warp_columns", "warp_depth"),
            lambda c: sizes(c).threads <= threads,
            lambda c: f"{sizes(c).threads} threads; allowed: {threads}",
        ),
        Rule(
            "idle_tiles",
            BLOCK,
            lambda c: (
                (c["warp_columns"] <= sizes(c).most_tiles)
                & (
                    (c["warp_tiles"] - 1) * c["warp_columns"] * sizes(c).passes
                    < sizes(c).most_tiles
                )
            ),
            lambda c: (
                f"{c['warp_columns']} warps with {c['warp_tiles']} tiles each share "
                f"{sizes(c).most_tiles} of {tiles} tiles of columns"
            ),
        ),
        Rule(
            "whole_tiles",
            ("warp_tiles", "interleave"),
            lambda c: c["warp_tiles"] % c["interleave"] == 0,
            lambda c: (
                f"{c['warp_tiles']} tiles of a warp, {c['interleave']} at a time; allowed: divisors"
            ),
        ),
    )


def _of_depth(sizes: Callable[[Mapping[str, Any]], RingSizes]) -> tuple[Rule, ...]:
    """Return the rules of the depth that blocks, warps and stages share."""
    whole = sizes({})
    deep, group = whole.deep, whole.product.group
    return (
        Rule(
            "whole_stages",
            ("stage_depth",),
            lambda c: deep % c["stage_depth"] == 0,
            lambda c: f"stages of {c['stage_depth']} tiles of the depth, which has {deep}",
        ),
        Rule(
            "whole_groups",
            ("stage_depth",),
            lambda c: (
                (not whole.is_grouped)
                | (sizes(c).depth % sizes(c).part_depth + group % sizes(c).part_depth == 0)
            ),
            lambda c: f"stages of {sizes(c).depth} of the depth cut groups of {group}",
        ),
        Rule(
            "idle_splits",
            DEPTH,
            lambda c: (c["splits"] - 1) * sizes(c).share < sizes(c).whole_stages,
            lambda c: f"{c['splits']} blocks share {sizes(c).whole_stages} stages of the depth",
        ),
        Rule(
            "idle_warps",
            (*DEPTH, "warp_depth"),
            lambda c: c["warp_depth"] <= sizes(c).share,
            lambda c: f"{c['warp_depth']} warps share {sizes(c).share} stages of the depth",
        ),
        Rule(
            "idle_stages",
            (*DEPTH, "warp_depth", "stages"),
            lambda c: (c["stages"] - 2) * c["warp_depth"] < sizes(c).share,
            lambda c: (
                f"{c['warp_depth']} rings of {c['stages']} stages for {sizes(c).share} of the depth"
            ),
        ),
    )


def _of_warpgroups(sizes: Callable[[Mapping[str, Any]], RingSizes]) -> tuple[Rule, ...]:
    """Return the rules of products by warpgroups."""
    return (
        Rule(
            "whole_warpgroups",
            ("multiply", "warp_columns"),
            lambda c: (c["multiply"] == "mma") | (c["warp_columns"] % WARPS == 0),
            lambda c: (
                f"{c['warp_columns']} warps of a team; allowed for wgmma: multiples of {WARPS}"
            ),
        ),
        Rule(
            "sums_of_warpgroups",
            ("multiply", "scales", "stage_depth"),
            lambda c: (c["multiply"] == "mma") | ~sizes(c).apart,
            lambda c: "scales after sums of a group; allowed for wgmma: early",
        ),
        Rule(
            "tiles_in_turns",
            ("multiply", "interleave"),
            lambda c: (c["multiply"] == "mma") | (c["interleave"] == 1),
            lambda c: f"{c['interleave']} tiles at a time; allowed for wgmma: 1",
        ),
    )


def _of_residents(
    sizes: Callable[[Mapping[str, Any]], RingSizes], target: CudaTarget
) -> tuple[Rule, ...]:
    """Return the rule of blocks that a multiprocessor holds at a time."""
    most = target.shared_per_multiprocessor

    def taken(c: Mapping[str, Any]) -> Any:
        return (sizes(c).shared_bytes + BLOCK_SHARED) * sizes(c).blocks_per_sm

    return (
        Rule(
            "resident_shared_memory",
            (*MEMORY, "blocks_per_sm"),
            lambda c: taken(c) <= most,
            lambda c: (
                f"{c['blocks_per_sm']} blocks take {taken(c)} bytes of shared memory; "
                f"a multiprocessor has {most}"
            ),
        ),
    )


def _has_scales_of_halves(product: CodedProduct) -> bool:
    """Tell whether scales are within the range of the floats that tensor cores multiply: bfloat16
    has float32's, and float16 that of arrays of float16 and of floats of 8 bits."""
    scale, kinds = product.scale, {o.name: o.dtype for o in product.program.operands}
    assert isinstance(product.activation, Read)
    if scale is None or kinds[product.activation.name] != "float16":
        return True
    if not isinstance(scale, Read):
        return False
    element = dtype(kinds[scale.name])
    is_small = element.bits <= BYTE and is_exact(element.values, "float16")
    return is_small or element.name == "float16"

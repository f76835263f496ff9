"""The rules that refuse a schedule of a map, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cpu.maps.straight import STRIPS
from tilewright.spaces.cpu.maps.tiling import NOTHING, TURN
from tilewright.spaces.cpu.sharing import LEAST_BYTES, idle_threads
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.maps.order import covering, extent_rules, order_rule
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.maps.template import MapTemplate

LEAST_TILE = 512
"""The least elements of a tile: to call a function for fewer costs more than to move them."""
SKEW = 3
"""Blocks that a strip may lag behind the one before it, as many as are loaded at the same time."""


def map_rules(template: MapTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *_tile_rules(template),
        *(_straight_rules(template.registers.side) if template.goes_straight else ()),
        *_memory_rules(template),
        *_worker_rules(template),
    )


def _tile_rules(template: MapTemplate) -> list[Rule]:
    plane, lanes = template.plane, template.registers.lanes
    tallest, widest = covering(plane.height), covering(max(plane.width, lanes))
    least_rows = min(template.registers.side, tallest) if plane.transposed else 1
    least = min(LEAST_TILE, min(tallest, 256) * min(widest, 65536))
    return [
        *extent_rules(plane, (least_rows, tallest), (lanes, widest)),
        Rule(
            "tile_size",
            ("tile_rows", "tile_columns"),
            lambda c: c["tile_rows"] * c["tile_columns"] >= least,
            lambda c: (
                f"a tile of {c['tile_rows'] * c['tile_columns']} elements is not worth a call; "
                f"at least {least} are"
            ),
        ),
        Rule(
            "needless_unroll",
            ("tile_columns", "unroll"),
            lambda c: (c["unroll"] == 1) | (c["unroll"] * lanes <= c["tile_columns"]),
            lambda c: f"a row of {c['tile_columns']} columns has not {c['unroll']} vectors",
        ),
        order_rule(plane),
    ]


def _straight_rules(side: int) -> list[Rule]:
    return [
        Rule(
            "register_transpose",
            (
                "tile_rows",
                "tile_columns",
                "streaming_stores",
                "prefetch",
                "register_transpose",
                "unroll",
            ),
            lambda c: (
                np.logical_not(c["register_transpose"])
                | (
                    (np.minimum(c["tile_rows"], c["tile_columns"]) >= side)
                    & (c["unroll"] == 1)
                    & np.logical_not(c["streaming_stores"])
                    & (c["prefetch"] != TURN)
                )
            ),
            lambda c: (
                f"blocks of {side} rows and columns go straight from registers to the caches: "
                "tiles hold whole ones, of which no rows are walked, streamed or turned before"
            ),
        ),
        Rule(
            "needless_strips",
            ("tile_rows", "register_transpose", "strips"),
            lambda c: (
                (c["strips"] == STRIPS[0])
                | (c["register_transpose"] & (c["tile_rows"] >= c["strips"] * side))
            ),
            lambda c: f"a tile of {c['tile_rows']} rows has not {c['strips']} strips of {side}",
        ),
        Rule(
            "needless_skew",
            ("tile_rows", "register_transpose", "skew"),
            lambda c: (
                (c["skew"] == 0) | (c["register_transpose"] & (c["tile_rows"] >= STRIPS[0] * side))
            ),
            lambda c: f"only one of several strips of {side} rows may be behind another",
        ),
    ]


def _memory_rules(template: MapTemplate) -> list[Rule]:
    plane, cpu = template.plane, template.cpu
    written = plane.view.written_bytes
    transposed = max((access.array.bytes for access in plane.transposed), default=0)
    room = cpu.l2_bytes // 2
    return [
        Rule(
            "scratch",
            ("tile_rows", "tile_columns", "prefetch"),
            lambda c: template.tiling(c).scratch_bytes <= room,
            lambda c: (
                f"{template.tiling(c).scratch_bytes} bytes are transposed for a tile; "
                f"allowed: {room}, half of L2"
            ),
        ),
        Rule(
            "needless_stream",
            ("streaming_stores",),
            lambda c: np.logical_not(c["streaming_stores"]) | (written > cpu.l2_bytes),
            lambda c: f"{written} bytes stay in L2 if they are not written past it",
        ),
        _needless_ahead(transposed, cpu, ("register_transpose",) if template.goes_straight else ()),
    ]


def _needless_ahead(transposed: int, cpu: CpuTarget, straight: tuple[str, ...]) -> Rule:
    """Return the rule that refuses to prefetch what is near enough: what fits in L2, or, for
    ``straight`` blocks, which wait for L2 too, what fits in L1."""

    def near(c: Any) -> Any:
        return (
            np.where(c["register_transpose"], cpu.l1_bytes, cpu.l2_bytes)
            if straight
            else cpu.l2_bytes
        )

    return Rule(
        "needless_ahead",
        ("prefetch", *straight),
        lambda c: (c["prefetch"] == NOTHING) | (transposed > near(c)),
        lambda c: (
            f"what turns has {transposed} bytes; only beyond {near(c)} one waits for the next"
        ),
    )


def _worker_rules(template: MapTemplate) -> list[Rule]:
    threads, moved = template.cpu.threads, template.workload.least_bytes
    least = threads if moved >= threads * LEAST_BYTES else 1
    return [
        idle_threads(threads, least),
        Rule(
            "idle_workers",
            ("tile_rows", "tile_columns", "workers"),
            lambda c: (
                ((template.tiling(c).share - 1) * c["workers"] < _longest(template, c))
                & (c["workers"] <= _longest(template, c))
            ),
            lambda c: (
                f"{c['workers']} workers share {_longest(template, c)} tiles along the longest "
                "rank: one has nothing to do"
            ),
        ),
    ]


def _longest(template: MapTemplate, c: object) -> np.ndarray:
    counts = np.broadcast_arrays(*template.tiling(c).counts)  # type: ignore[arg-type]
    return np.stack(counts).max(axis=0)

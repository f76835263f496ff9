"""The rules that refuse a schedule of a chained kernel, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.chained.blocks import DOTS, STEPS
from tilewright.spaces.cpu.sharing import idle_threads
from tilewright.spaces.cpu.tiles.decisions import whole_tile_rules
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cpu.chained.template import ChainedTemplate

ENOUGH = 4
"""Blocks of rows for each worker that share the work out evenly, so that keys need no split."""
BLOCK_SHARE_OF_L2 = 0.8
"""The share of L2 that a worker's block may take, so that keys and matrices can stream past it."""


def chained_rules(template: ChainedTemplate) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_tile_rules(template), *_size_rules(template), *_worker_rules(template))


def _tile_rules(template: ChainedTemplate) -> list[Rule]:
    lanes = template.lanes
    width = ceil_div(template.chained.width.extent, lanes)
    return [
        *whole_tile_rules("score", template.cpu),
        *whole_tile_rules("value", template.cpu),
        Rule(
            "value_width",
            ("value_vectors",),
            lambda c: c["value_vectors"] <= width,
            lambda c: f"a tile of {c['value_vectors']} vectors is wider than the {width} of a row",
        ),
        Rule(
            "key_panels",
            ("keys", "key_layout", "score_vectors"),
            lambda c: (c["key_layout"] == DOTS) | (c["keys"] % (c["score_vectors"] * lanes) == 0),
            lambda c: (
                f"{c['keys']} keys are no multiple of a panel of {c['score_vectors'] * lanes}"
            ),
        ),
        Rule(
            "key_vectors",
            ("keys", "unroll"),
            lambda c: c["keys"] % (c["unroll"] * lanes) == 0,
            lambda c: f"{c['keys']} keys are no multiple of {c['unroll']} vectors of {lanes}",
        ),
    ]


def block_bytes(template: ChainedTemplate, columns: Any) -> Any:
    """Compute the bytes that a block keeps: its rows, scores and sums. If keys are packed in steps,
    that is one step of its rows and of the keys."""
    blocks = template.blocks(columns)
    parts = dict(blocks.parts())
    kept = sum(parts.values()) - parts["packed"]
    step = parts["packed"] - blocks.rows * (blocks.depth - blocks.passing_depth)
    return 4 * (kept + blocks.stepped * step)


def _size_rules(template: ChainedTemplate) -> list[Rule]:
    room = BLOCK_SHARE_OF_L2 * template.cpu.l2_bytes
    return [
        Rule(
            "block_size",
            ("rows", "keys", "key_layout", "value_layout"),
            lambda c: block_bytes(template, _sizes(c)) <= room,
            lambda c: (
                f"a block of {c['rows']} rows and {c['keys']} keys takes "
                f"{int(block_bytes(template, _sizes(c)))} bytes; allowed: {int(room)}, "
                "so that it stays in L2"
            ),
        ),
    ]


def _sizes(columns: Any) -> dict[str, Any]:
    """Return the columns with register tiles of one, for these take no memory of a block."""
    ones = dict.fromkeys(("score_rows", "score_vectors", "value_rows", "value_vectors"), 1)
    scores = np.where(columns["key_layout"] == STEPS, STEPS, DOTS)
    sizes = {name: columns[name] for name in ("rows", "keys", "value_layout")}
    return {**ones, "key_layout": scores, **sizes}


def _worker_rules(template: ChainedTemplate) -> list[Rule]:
    chained, threads = template.chained, template.cpu.threads
    items = chained.batches * chained.row_count
    least = threads if items >= threads else 1
    shared = ("rows", "workers", *(["splits"] if threads > 1 else []))

    def blocks(c: Any) -> Any:
        parts = c["splits"] if threads > 1 else 1
        return parts * chained.batches * ceil_div(chained.row_count, c["rows"])

    return [
        idle_threads(threads, least),
        Rule(
            "row_share",
            shared,
            lambda c: c["workers"] <= blocks(c),
            lambda c: (
                f"{c['workers']} workers share fewer blocks of {c['rows']} rows; "
                "some would have none"
            ),
        ),
        *(_split_rules(template) if threads > 1 else []),
    ]


def _split_rules(template: ChainedTemplate) -> list[Rule]:
    chained = template.chained

    def tiles(c: Any) -> Any:
        return ceil_div(chained.key.extent, c["keys"])

    return [
        Rule(
            "split_keys",
            ("keys", "splits"),
            lambda c: (c["splits"] - 1) * ceil_div(tiles(c), c["splits"]) < tiles(c),
            lambda c: (
                f"{c['splits']} parts of {chained.key.extent} keys; some would have no tile of "
                f"{c['keys']}"
            ),
        ),
        Rule(
            "split_need",
            ("rows", "splits", "workers"),
            lambda c: (
                (c["splits"] == 1)
                | (chained.batches * ceil_div(chained.row_count, c["rows"]) < ENOUGH * c["workers"])
            ),
            lambda c: (
                f"keys in {c['splits']} parts; they are split only where there are fewer than "
                f"{ENOUGH} blocks of {c['rows']} rows for each of {c['workers']} workers"
            ),
        ),
    ]

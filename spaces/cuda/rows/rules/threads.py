"""Rules on threads of a row, rows of a block and of a thread, and blocks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.target import SEGMENT, WARP, CudaTarget
from tilewright.spaces.template import Decision, Rule

ACROSS = 32
"""The fewest bytes side by side that a block reads where neighbouring threads have different
rows."""
LEAST_CLUSTER_BYTES = 8 * 1024
"""The fewest bytes of a row that are worth a further block of a cluster."""
LEAST_CLUSTER_THREADS = 128
SHORT = 4
"""The most vectors of a thread with which one warp may have a row alone, whatever the rows.

Barriers between several warps would take longer than a few more loads.
"""
BUSY = 512
"""Threads that keep a multiprocessor busy, roughly."""


def thread_rules(sizes: RowSizes, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return rules on how many threads share a row."""
    columns, reads = sizes.rows.column_count, ("vector", "row_threads")
    row_bytes = columns * sizes.element_bytes
    widest = max(v for d in decisions if d.name == "vector" for v in d.values if isinstance(v, int))
    possible = WARP * widest * sizes.element_bytes
    least = 0 if sizes.lies_along_rows or row_bytes <= 2 * SEGMENT else min(SEGMENT, possible)

    def side(c: Any) -> Any:
        return np.minimum(c["row_threads"], WARP) * c["vector"] * sizes.element_bytes

    return [
        Rule(
            "idle_threads",
            reads,
            lambda c: (
                (c["row_threads"] * c["vector"] <= columns)
                | (sizes.rows.is_map & (c["row_threads"] <= WARP))
            ),
            lambda c: (
                f"{c['row_threads']} threads of {c['vector']} elements are more than the "
                f"{columns} columns of a row"
            ),
        ),
        Rule(
            "segments",
            reads,
            lambda c: side(c) >= least,
            lambda c: (
                f"the threads of a row read {side(c)} bytes side by side; memory gives {least} "
                "at a time"
            ),
        ),
        *_busy_rules(sizes, target, decisions),
    ]


def _busy_rules(sizes: RowSizes, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return rules by which all threads together keep the GPU busy.

    They are judged as soon as the threads of a row are known, then the rows of a thread, then the
    blocks of a cluster.
    """
    rows, columns = sizes.rows.row_count, sizes.rows.column_count
    reads = ("vector", "row_threads", "thread_rows", "cluster")
    (clusters,) = (d.values for d in decisions if d.name == "cluster")
    most_blocks = max(int(n) for n in clusters)

    def enough(c: Any, reads: Sequence[str]) -> Any:
        most = np.minimum(columns // c["vector"], BUSY)
        least = np.minimum(target.multiprocessors * BUSY, rows * most) // 2
        at_once = c["thread_rows"] if "thread_rows" in reads else 1
        shared = np.where(c["row_threads"] >= LEAST_CLUSTER_THREADS, most_blocks, 1)
        blocks = c["cluster"] if "cluster" in reads else shared
        alone = (c["row_threads"] == WARP) & (columns <= SHORT * WARP * c["vector"])
        return alone | (ceil_div(rows, at_once) * c["row_threads"] * blocks >= least)

    def few_threads(reads: Sequence[str]) -> Rule:
        return Rule(
            "few_threads",
            tuple(reads),
            lambda c: enough(c, reads) | sizes.spreads,
            lambda c: (
                f"{rows} rows of {c['row_threads']} threads in each of {c['cluster']} blocks, "
                f"{c['thread_rows']} rows a thread, leave most of the GPU idle, and a row has work "
                "for more"
            ),
        )

    return [few_threads(reads[:known]) for known in (2, 3, 4)]


def block_rules(sizes: RowSizes, target: CudaTarget) -> list[Rule]:
    """Return rules on how many rows a block and a thread have at once."""
    rows, most = sizes.rows.row_count, min(target.threads_per_block, 512)
    reads = ("row_threads", "block_rows")
    if sizes.lies_along_rows:
        most = target.threads_per_block
    side = min(ACROSS, rows * sizes.element_bytes) if sizes.lies_along_rows else 0

    def alone(c: Any) -> Any:
        return (c["row_threads"] > WARP) & (not sizes.lies_along_rows)

    return [
        Rule(
            "segments_across",
            ("block_rows",),
            lambda c: c["block_rows"] * sizes.element_bytes >= side,
            lambda c: (
                f"{c['block_rows']} rows lie side by side in {c['block_rows']} times "
                f"{sizes.element_bytes} bytes; memory gives {ACROSS} at a time"
            ),
        ),
        Rule(
            "whole_warps",
            reads,
            lambda c: sizes.threads(c) % WARP == 0,
            lambda c: f"a block of {sizes.threads(c)} threads is no whole number of warps",
        ),
        Rule(
            "block_rows",
            reads,
            lambda c: (
                np.where(alone(c), c["block_rows"] == 1, sizes.threads(c) <= most)
                & ((c["block_rows"] < 2 * rows) | (sizes.threads(c) == WARP))
            ),
            lambda c: (
                f"{c['block_rows']} rows of {c['row_threads']} threads: a row of more than a warp "
                f"has a block of its own, others share up to {most} threads; there are {rows} rows"
            ),
        ),
        Rule(
            "thread_rows",
            ("block_rows", "thread_rows"),
            lambda c: (c["thread_rows"] == 1) | (sizes.tile_rows(c) < 2 * rows),
            lambda c: f"a tile of {sizes.tile_rows(c)} rows is twice the {rows} there are, or more",
        ),
    ]


def cluster_rules(sizes: RowSizes) -> list[Rule]:
    """Return rules on how much of a row is worth a block of a cluster."""
    columns = sizes.rows.column_count
    row_bytes = columns * sizes.element_bytes
    return [
        Rule(
            "cluster_threads",
            ("row_threads", "cluster"),
            lambda c: (c["cluster"] == 1) | (c["row_threads"] >= LEAST_CLUSTER_THREADS),
            lambda c: (
                f"blocks of a cluster share a row where it has {LEAST_CLUSTER_THREADS} threads or "
                f"more in each, not {c['row_threads']}"
            ),
        ),
        Rule(
            "cluster_share",
            ("vector", "row_threads", "cluster"),
            lambda c: (
                (c["cluster"] == 1)
                | ((row_bytes >= LEAST_CLUSTER_BYTES * c["cluster"]) & (sizes.turn(c) <= columns))
            ),
            lambda c: (
                f"a row of {row_bytes} bytes is too little for {c['cluster']} blocks of "
                f"{c['row_threads']} threads"
            ),
        ),
    ]

"""Rules of the thin template, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.rules import MOST_THREADS, memory_rules
from tilewright.spaces.cuda.blocks.tile_grid import exchange_rule, launch_rules
from tilewright.spaces.cuda.residency import block_threads, resident_threads
from tilewright.spaces.cuda.target import SEGMENT, WARP, CudaTarget
from tilewright.spaces.cuda.thin.product import FRAGMENT
from tilewright.spaces.cuda.thin.sizes import ThinSizes
from tilewright.spaces.cuda.thin.ways import by_way
from tilewright.spaces.rules.early import below, judged_early
from tilewright.spaces.template import Decision, Rule

MOST_PRODUCTS = 1024
"""The most multiply-adds of a step in a thread's code: more outgrow the instruction cache."""
LEAST_FLIGHT = 16 * 1024
"""Bytes in flight to a multiprocessor that keep its share of memory busy, or nearly so."""
MOST_WAVES = 8
"""The most blocks for each multiprocessor if the depth is split."""


WARPS = ("warp_columns", "warp_depth")
TILE = ("multiply", "lane_columns", "thread_columns", "thread_depth")


def thin_rules(sizes: ThinSizes, target: CudaTarget, decisions: Sequence[Decision]) -> list[Rule]:
    """Return all rules of the template, cheapest first."""
    return [
        *_vector_rules(sizes),
        *_matrix_reading_rules(sizes),
        *_row_rules(),
        *_matrix_shape_rules(),
        *_extent_rules(sizes),
        *launch_rules(
            sizes.product, ("warp_columns", "lane_columns", "thread_columns"), sizes.tiles
        ),
        block_threads(sizes, target, WARPS, MOST_THREADS),
        resident_threads(sizes, target, (*WARPS, "blocks_per_sm")),
        *memory_rules(
            sizes,
            target,
            decisions,
            (*TILE, "in_flight", "small_operand", "load_order", "splits"),
            WARPS,
        ),
        *_work_rules(sizes, target),
        *_part_rules(sizes),
        exchange_rule(),
    ]


def _vector_rules(sizes: ThinSizes) -> list[Rule]:
    """Return rules by which threads read whole vectors, lanes whole segments."""
    thin, vector = sizes.thin, sizes.thin.large_vector
    across = "thread_depth" if thin.large_runs_deep else "thread_columns"

    def side(c: Any) -> Any:
        """Return the bytes that neighbouring lanes read side by side."""
        lanes = WARP // c["lane_columns"] if thin.large_runs_deep else c["lane_columns"]
        return lanes * vector * sizes.bytes

    extent = thin.terms if thin.large_runs_deep else thin.many
    widest = WARP * vector * sizes.bytes
    least = min(SEGMENT, widest, extent * sizes.bytes)
    return [
        Rule(
            "whole_vectors",
            (across,),
            lambda c: c[across] % vector == 0,
            lambda c: f"{across}={c[across]} is no whole number of vectors of {vector} elements",
        ),
        Rule(
            "segments",
            ("lane_columns",),
            lambda c: side(c) >= least,
            lambda c: (
                f"lanes read {side(c)} bytes side by side; memory gives {SEGMENT} at a time, and "
                f"{least} can be had"
            ),
        ),
        Rule(
            "code_size",
            ("multiply", "thread_columns", "thread_depth"),
            lambda c: (
                np.logical_not(_plain(c))
                | (thin.few * c["thread_columns"] * c["thread_depth"] <= MOST_PRODUCTS)
            ),
            lambda c: (
                f"a thread would write out {thin.few * c['thread_columns'] * c['thread_depth']} "
                f"multiply-adds a step; allowed: {MOST_PRODUCTS}"
            ),
        ),
    ]


def _plain(c: Any) -> Any:
    """Return true where a schedule does not use ``mma.sync``."""
    return np.logical_not(by_way(c, lambda way: way.matrices))


def _matrix_reading_rules(sizes: ThinSizes) -> list[Rule]:
    """Return rules on what ``mma.sync`` needs to be read at once."""
    thin = sizes.thin
    run = thin.large_vector if thin.large_runs_deep else 4
    return [
        Rule(
            "matrix_vectors",
            ("multiply",),
            lambda c: _plain(c) | (run % 4 == 0) & (thin.large_runs_deep or thin.large_vector > 1),
            lambda c: (
                f"mma.sync takes four neighbouring terms, or pairs of columns, of a thread; "
                f"{thin.large.name} can be read by {thin.large_vector} at a time"
            ),
        ),
        Rule(
            "matrix_pairs",
            ("multiply", "small_operand"),
            lambda c: _plain(c) | (c["small_operand"] == "shared") | (thin.small_vector > 1),
            lambda c: (
                f"mma.sync takes pairs of neighbouring terms; {thin.small.name} has none that can "
                "be read at once from memory, so it must be copied to shared memory"
            ),
        ),
    ]


def _row_rules() -> list[Rule]:
    """Return rules on when warps may read by rows on behalf of the lanes of ``mma.sync``."""
    return [
        Rule(
            "needless_rows",
            ("multiply", "load_order"),
            lambda c: (c["load_order"] == "lanes") | np.logical_not(_plain(c)),
            lambda c: "lanes that need not be mma.sync's read rows side by side anyway",
        ),
        Rule(
            "whole_rows",
            ("thread_depth", "load_order"),
            lambda c: (c["load_order"] == "lanes") | (c["thread_depth"] >= 16),
            lambda c: (
                f"a warp reads {8 * c['thread_depth']} bytes of a row, as lanes of mma.sync do; "
                "by rows, at least 128"
            ),
        ),
        Rule(
            "rows_in_flight",
            ("in_flight", "load_order"),
            lambda c: (c["load_order"] == "lanes") | (c["in_flight"] == 1),
            lambda c: "rows are in flight while those in shared memory are multiplied; allowed: 1",
        ),
    ]


def _matrix_shape_rules() -> list[Rule]:
    """Return rules on the lanes and elements of threads that ``mma.sync`` needs."""
    return [
        Rule(
            "matrix_lanes",
            ("multiply", "lane_columns"),
            lambda c: _plain(c) | (c["lane_columns"] == FRAGMENT),
            lambda c: f"mma.sync has {FRAGMENT} lanes along columns, not {c['lane_columns']}",
        ),
        Rule(
            "matrix_columns",
            ("multiply", "thread_columns"),
            lambda c: c["thread_columns"] % by_way(c, lambda way: way.columns) == 0,
            lambda c: (
                "mma.sync takes two columns of a thread; one is enough for multiply=mma_turned"
            ),
        ),
        Rule(
            "matrix_terms",
            ("multiply", "thread_depth"),
            lambda c: _plain(c) | (c["thread_depth"] % 4 == 0),
            lambda c: f"mma.sync takes four terms of a thread; {c['thread_depth']} are no multiple",
        ),
    ]


def _extent_rules(sizes: ThinSizes) -> list[Rule]:
    """Return rules by which tiles are less than twice as large as the product.

    That holds in both directions; the smallest tile there is may be larger.
    """
    thin = sizes.thin
    wide, deep = (1, thin.large_vector) if thin.large_runs_deep else (thin.large_vector, 1)
    widest, deepest = 2 * max(thin.many, 16 * wide), 2 * max(thin.terms, 128 * deep)

    def columns(c: Any, names: Sequence[str]) -> Any:
        return prod(c[name] for name in names)

    def depth(c: Any, names: Sequence[str]) -> Any:
        return WARP // c["lane_columns"] * prod(c[name] for name in names[1:])

    def broad(c: Any, names: Sequence[str]) -> str:
        return (
            f"a tile of {columns(c, names)} columns is twice as wide as the product's "
            f"{thin.many}, or wider"
        )

    def long(c: Any, names: Sequence[str]) -> str:
        return f"a step of {depth(c, names)} terms is twice the {thin.terms} there are, or more"

    across = ("lane_columns", "thread_columns", "warp_columns")
    along = ("lane_columns", "thread_depth", "warp_depth")
    return [
        *below("tile_width", across, columns, widest, broad, least=2),
        *below("step_depth", along, depth, deepest, long, least=2),
    ]


def _work_rules(sizes: ThinSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which enough is in flight from memory, and no more blocks than help."""
    thin = sizes.thin
    share = thin.large.bytes // target.multiprocessors
    share = min(share, sizes.product.matrix_bytes(thin.large))
    least = min(LEAST_FLIGHT, 1 << max(share // 4, 1).bit_length() - 1)
    reads = ("thread_columns", "thread_depth", "in_flight", "warp_columns", "warp_depth")

    def flight(c: Any) -> Any:
        return sizes.threads(c) * sizes.flight(c) * c["blocks_per_sm"]

    return [
        Rule(
            "in_flight",
            reads[:3],
            lambda c: target.threads_per_multiprocessor * sizes.flight(c) >= least,
            lambda c: (
                f"with {sizes.flight(c)} bytes of each thread on their way, no multiprocessor "
                f"comes to the {least} that keep memory busy"
            ),
        ),
        Rule(
            "flight",
            (*reads, "blocks_per_sm"),
            lambda c: flight(c) >= least,
            lambda c: (
                f"{flight(c)} bytes on their way to a multiprocessor leave memory idle; at least "
                f"{least} are asked for"
            ),
        ),
        Rule(
            "needless_split",
            ("lane_columns", "thread_columns", "warp_columns", "blocks_per_sm", "splits"),
            lambda c: (
                (c["splits"] == 1)
                | (sizes.tiles(c) * c["splits"] <= MOST_WAVES * target.multiprocessors)
            ),
            lambda c: (
                f"{sizes.tiles(c)} tiles in {c['splits']} parts make more than {MOST_WAVES} blocks "
                f"for each of {target.multiprocessors} multiprocessors; splitting the depth gains "
                "nothing"
            ),
        ),
    ]


def _part_rules(sizes: ThinSizes) -> list[Rule]:
    """Return rules by which no part of the depth is idle, and no stage without a step.

    With one warp along the depth there are the most steps.
    """
    rules = [
        Rule(
            "idle_parts",
            (),
            lambda c: (c["splits"] - 1) * ceil_div(sizes.steps(c), c["splits"]) < sizes.steps(c),
            lambda c: (
                f"{sizes.steps(c)} steps of {sizes.depth(c)} terms in {c['splits']} parts of "
                f"{ceil_div(sizes.steps(c), c['splits'])} leave a part without work"
            ),
        ),
        Rule(
            "second_stage",
            (),
            lambda c: (c["in_flight"] == 1) | (ceil_div(sizes.steps(c), c["splits"]) > 1),
            lambda c: "a block has one step, so a second one is never in flight; allowed: 1",
        ),
    ]
    reads = ("lane_columns", "thread_depth", "in_flight", "splits", "warp_depth")
    least = {"in_flight": 1, "splits": 1, "warp_depth": 1}
    return [rule for n in (3, 4, 5) for rule in judged_early(rules, reads[:n], least)]

"""The rules that refuse a schedule of a matrix product, each with its sentence.

There are three kinds. Resources: accumulators must fit in registers, and what a loop order keeps
must fit in its cache (Low et al., "Analytical Modeling Is Enough for High-Performance BLIS", ACM
TOMS 2016, section 4). Merit: tiles that cannot hide the latency of an FMA, tiles that load more
than they compute, and copies that do not pay are refused where the product allows better ones.
Identity: a bound that leads to the same blocks as a smaller bound gives the same schedule, and only
the smallest is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product as pairs
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.blocked.memory_rules import (
    ahead_rules,
    cache_rules,
    layout_rules,
    packing_rules,
)
from tilewright.spaces.cpu.blocked.rule_context import Context, TileContext
from tilewright.spaces.cpu.sharing import (
    LEAST_MULTIPLY_ADDS,
    enough_threads,
    idle_batch_workers,
    idle_threads,
)
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.template import Decision, Rule
from tilewright.spaces.workloads.product import Product

LEAST_CHAINS = 8
"""The least independent accumulations: they keep two FMA pipes of latency 4 busy. With many
registers, a third of them must accumulate."""
LEAST_INTENSITY = 1.5
"""The least FMAs per load, for cores that start as many loads as FMAs a cycle, with room for
misses. With few registers, it is three quarters of the best that tiles reach."""
TILE = ("tile_rows", "tile_vectors")
WORKERS = ("row_workers", "column_workers", "batch_workers")


def contraction_rules(
    product: Product, target: CpuTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template for plain products, the cheapest first."""
    values = {decision.name: np.array(decision.values) for decision in decisions}
    makers = (
        *(tile_rules, _worker_rules, layout_rules, packing_rules, cache_rules, ahead_rules),
        _identity_rules,
    )
    context = Context(product, target, values)
    return tuple(rule for make in makers for rule in make(context))


def tile_rules(context: TileContext) -> list[Rule]:
    """Return the rules that a tile fits the registers and the product, and keeps the multipliers
    busy."""
    return [*_fitting_rules(context), *_busy_rules(context)]


def _fitting_rules(context: TileContext) -> list[Rule]:
    product, target = context.product, context.target
    return [
        Rule(
            "registers",
            TILE,
            lambda c: context.fits(c["tile_rows"], c["tile_vectors"]),
            lambda c: (
                f"a tile of {c['tile_rows']} rows of {c['tile_vectors']} vectors takes "
                f"{registers(c['tile_rows'], c['tile_vectors'])} vector registers; "
                f"there are {target.vector_registers}"
            ),
        ),
        Rule(
            "tile_height",
            ("tile_rows",),
            lambda c: c["tile_rows"] <= product.rows,
            lambda c: (
                f"a tile of {c['tile_rows']} rows is higher than the product's {product.rows}"
            ),
        ),
        Rule(
            "tile_width",
            ("tile_vectors",),
            lambda c: c["tile_vectors"] <= context.widest,
            lambda c: (
                f"a tile of {c['tile_vectors']} vectors is wider than the product's "
                f"{product.columns} columns, which are {context.widest}"
            ),
        ),
    ]


def _busy_rules(context: TileContext) -> list[Rule]:
    wanted = max(LEAST_CHAINS, context.target.vector_registers // 3)
    chains = min(wanted, max(r * v for r, v in context.tiles))
    best = max(r * v / (r + v) for r, v in context.tiles)
    intensity = min(LEAST_INTENSITY, 0.75 * best)
    return [
        Rule(
            "latency",
            TILE,
            lambda c: c["tile_rows"] * c["tile_vectors"] >= chains,
            lambda c: (
                f"{c['tile_rows'] * c['tile_vectors']} accumulators do not hide the latency of "
                f"an FMA; at least {chains} are needed"
            ),
        ),
        Rule(
            "intensity",
            TILE,
            lambda c: (
                c["tile_rows"] * c["tile_vectors"]
                >= intensity * (c["tile_rows"] + c["tile_vectors"])
            ),
            lambda c: (
                f"a tile of {c['tile_rows']} rows of {c['tile_vectors']} vectors does "
                f"{c['tile_rows'] * c['tile_vectors']} FMAs for "
                f"{c['tile_rows'] + c['tile_vectors']} loads; at least {intensity:.2f} a load "
                "are needed"
            ),
        ),
    ]


def _worker_rules(context: Context) -> list[Rule]:
    product = context.product
    work = float(product.rows) * product.columns * product.terms * product.batches
    row_tiles = ceil_div(product.rows, context.values["tile_rows"][0])
    column_tiles = ceil_div(product.columns, context.lanes)
    most = dict(zip(WORKERS, (row_tiles, column_tiles, product.batches), strict=True))
    rules = worker_rules(context, work, most)
    return [*rules, *([idle_batch_workers(product.batches)] if product.batch else [])]


def worker_rules(context: TileContext, work: float, most: Mapping[str, int]) -> list[Rule]:
    """Return the rules that there are no more workers than threads, and no fewer than ``work``, a
    number of multiply-adds, is worth; ``most`` gives the most useful workers of each kind."""
    threads = context.target.threads
    wanted = int(min(threads, max(1.0, work // LEAST_MULTIPLY_ADDS)))
    reads = tuple(name for name in WORKERS if name in context.values)
    choices = pairs(*([n for n in context.values[w].tolist() if n <= most[w]] for w in reads))
    least = max(prod(each) for each in choices if prod(each) <= wanted)

    return [
        *(enough_threads(threads, reads[:n]) for n in range(2, len(reads) + 1)),
        idle_threads(threads, least, reads),
    ]


def _identity_rules(context: Context) -> list[Rule]:
    product, lanes = context.product, context.lanes

    def depth_blocks(bound: Any) -> Any:
        return ceil_div(product.terms, np.maximum(bound, 1))

    def row_blocks(c: Any, bound: Any) -> Any:
        tiles = ceil_div(ceil_div(product.rows, c["tile_rows"]), c["row_workers"])
        return blocks_of(tiles, bound, c["tile_rows"])

    def column_blocks(c: Any, bound: Any) -> Any:
        width = c["tile_vectors"] * lanes
        tiles = ceil_div(ceil_div(product.columns, width), c["column_workers"])
        return blocks_of(tiles, bound, width)

    return [
        distinct(context, "block_depth", (), lambda c, bound: depth_blocks(bound)),
        distinct(context, "block_rows", ("tile_rows", "row_workers"), row_blocks),
        distinct(context, "block_columns", ("tile_vectors", "column_workers"), column_blocks),
    ]


def distinct(context: TileContext, name: str, reads: tuple[str, ...], count: Any) -> Rule:
    """Return the rule that, of bounds ``name`` with the same ``count(c, bound)`` of blocks, only
    the smallest is allowed."""

    def holds(c: Any) -> Any:
        before = context.before(name, c[name])
        return (before == 0) | (count(c, c[name]) != count(c, before))

    def explain(c: Mapping[str, Any]) -> str:
        before = int(context.before(name, c[name]))
        return f"{name}={c[name]} makes the same blocks as {name}={before}"

    return Rule(f"distinct_{name}", (*reads, name), holds, explain)

"""What rules out a schedule of a Hopper contraction, and the sentence that says so.

Resources come first: shared memory, registers. Then what roles and layouts ask for. Then merit
and identity: tiles larger than the output, blocks without work, decisions that say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spaces.algebra.integers import ceil_div, round_up
from spaces.cuda.blocks.implicit import ImplicitProduct
from spaces.cuda.blocks.segments import most_rows, segments_of
from spaces.cuda.blocks.tile_grid import grid_rules
from spaces.cuda.hopper.fetched import fetched_of
from spaces.cuda.hopper.grid import MOST_IN_TABLE
from spaces.cuda.hopper.places import whole_channels, why_no_placed_output
from spaces.cuda.hopper.sizes import HopperSizes, promotes
from spaces.cuda.hopper.split import WAYS
from spaces.cuda.hopper.split_rules import exchange_rules
from spaces.cuda.hopper.tile import BLOCK, why_no_tensor_map
from spaces.cuda.target import CudaTarget
from spaces.rules.early import foresee
from spaces.template import Decision, Rule

FEW_ROWS = 256
"""Rows of the output up to which it may pay to compute it transposed."""
MOST_TILES = 64
"""Tiles a multiprocessor walks over, where larger tiles would make it fewer."""
_TILE = ("block_m", "block_n", "swapped")
INSTRUCTION_REGISTERS = 26
"""What ptxas needs beside the sums that one wgmma writes (its message C7602); it counts the
registers a thread has at launch, before setmaxnreg."""


def hopper_rules(
    sizes: HopperSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """All rules of the Hopper template."""
    product = sizes.product
    rules = [
        *_role_rules(sizes),
        *(_window_rules(product) if isinstance(product, ImplicitProduct) else ()),
        *(_segment_rules() if segments_of(product) else ()),
        *_resource_rules(sizes, target),
        *(_promotion_rules() if promotes(product) else ()),
        *_store_rules(sizes),
        *_fetch_rules(sizes),
        *_size_rules(sizes, target),
        *_needless_rules(sizes, target),
        *_raster_rules(sizes),
        *exchange_rules(sizes, target),
        *grid_rules(product, _TILE, sizes.block, target.multiprocessors),
    ]
    by_name = {decision.name: decision for decision in decisions}
    return (*rules, *_foresight_rules(rules, by_name))


def _foresight_rules(rules: Sequence[Rule], decisions: Mapping[str, Decision]) -> list[Rule]:
    """Early checks: after each prefix of the decisions, some completion must satisfy the register,
    shared-memory, raster and cluster rules."""
    roles = ["block_m", "block_n", "schedule", "consumers", "producer_registers", "residency"]
    memory = [*_TILE, "consumers", "residency", "depth", "staging", "stages"]
    ring = ["block_m", "block_n", "stages", "consumers", "residency", "depth", "staging", "swapped"]
    parts = [*_TILE, "exchange", "residency", "depth", "staging", "splits"]
    room = [*_TILE, "exchange", "consumers", "residency", "depth", "staging", "stages", "splits"]
    crew = [*_TILE, "exchange", *roles[2:], "splits"]
    order = [*_TILE, "raster", "group"]
    if "promotion" in decisions:
        roles.append("promotion")
    fetching = [*_TILE, *roles[2:4], "residency", "depth", "fetch", "staging", "stages"]
    return [
        rule
        for names, known in (
            *(((fetching, (8, 9)),) if "fetch" in decisions else ()),
            (roles, range(2, len(roles))),
            (memory, (5, 6, 7)),
            (ring, (3,)),
            (parts, (4, 5, 6, 7)),
            (room, (5, 6, 7, 8, 9)),
            (crew, (4, 5, 6, 7, 8)),
            (order, (4,)),
        )
        for rule in foresee([decisions[name] for name in names], rules, known)
    ]


def _role_rules(sizes: HopperSizes) -> list[Rule]:
    return [
        Rule(
            "shared_rows",
            ("block_m", "consumers", "schedule"),
            lambda c: (c["schedule"] == "pingpong") | (c["block_m"] // BLOCK % c["consumers"] == 0),
            lambda c: (
                f"{c['block_m']} rows are no whole number of blocks of {BLOCK} for each of "
                f"{c['consumers']} warpgroups"
            ),
        ),
        Rule(
            "turns",
            ("consumers", "schedule"),
            lambda c: (c["schedule"] == "cooperative") | (c["consumers"] > 1),
            lambda c: "one warpgroup has nobody to take turns with; 2 or 3 can",
        ),
        Rule(
            "given_registers",
            ("consumers", "producer_registers"),
            lambda c: (c["producer_registers"] == 0) | (c["consumers"] > 1),
            lambda c: (
                "one multiplying warpgroup has all the registers a thread can have; "
                "none need to be moved to it"
            ),
        ),
        Rule(
            "kept_registers",
            ("consumers", "producer_registers"),
            lambda c: (
                (c["producer_registers"] == 0)
                | (sizes.group_registers(_keeping(c)) > sizes.group_registers(_keeping(c, 8)))
            ),
            lambda c: (
                f"keeping {c['producer_registers']} registers for loading gives the others "
                f"{sizes.group_registers(_keeping(c))}, as keeping 8 more does"
            ),
        ),
        Rule(
            "even_registers",
            ("producer_registers", "residency"),
            lambda c: (c["producer_registers"] == 0) | (c["residency"] == 1),
            lambda c: (
                f"{c['residency']} blocks on a multiprocessor leave no registers worth moving; "
                "allowed: producer_registers=0"
            ),
        ),
    ]


def _window_rules(product: ImplicitProduct) -> list[Rule]:
    """A step of depth is of one point of a window."""
    channels = whole_channels(product)
    if not channels:
        return []
    return [
        Rule(
            "channels",
            ("depth",),
            lambda c: channels % c["depth"] == 0,
            lambda c: f"steps of {c['depth']} terms do not divide the {channels} channels",
        )
    ]


def _segment_rules() -> list[Rule]:
    """Tiles of rows next to each other may be of two segments, and have no operand in common."""
    return [
        Rule(
            "segment_cluster",
            ("swapped", "cluster"),
            lambda c: c["cluster"] != np.where(c["swapped"], "1x2", "2x1"),
            lambda c: (
                f"tiles of a cluster {c['cluster']} may be of two segments of rows; "
                f"allowed: 1x1, {'2x1' if c['swapped'] else '1x2'}"
            ),
        )
    ]


def _resource_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    roles = ["block_m", "block_n", "consumers", "schedule", "producer_registers", "residency"]
    if promotes(sizes.product):
        roles.append("promotion")
    return [
        Rule(
            "shared_memory",
            (*_TILE, "depth", "consumers", "residency", "stages", "staging"),
            lambda c: sizes.ring_bytes(c) <= sizes.most_shared(c, target),
            lambda c: (
                f"{c['stages']} stages of {sizes.stage_bytes(c)} bytes and the staging buffers "
                f"take {sizes.ring_bytes(c)} bytes of shared memory; one of {c['residency']} "
                f"blocks on a multiprocessor may have {sizes.most_shared(c, target)}"
            ),
        ),
        Rule(
            "registers",
            tuple(roles),
            lambda c: sizes.results(c) + sizes.spare <= sizes.group_registers(c),
            lambda c: (
                f"a thread keeps {sizes.results(c)} sums and products and needs "
                f"{sizes.spare} registers more; it may have {sizes.group_registers(c)}"
            ),
        ),
        Rule(
            "instruction",
            ("block_n", "consumers", "producer_registers", "residency"),
            lambda c: c["block_n"] // 2 + INSTRUCTION_REGISTERS <= sizes.launch_registers(c),
            lambda c: (
                f"a wgmma of {c['block_n']} columns takes "
                f"{c['block_n'] // 2 + INSTRUCTION_REGISTERS} registers; "
                f"{sizes.threads(c)} threads start with {sizes.launch_registers(c)}"
            ),
        ),
    ]


def _promotion_rules() -> list[Rule]:
    return [
        Rule(
            "promotion",
            ("promotion", "in_flight"),
            lambda c: (c["promotion"] == 0) | (c["in_flight"] == 0),
            lambda c: "products that are added to sums have to be done; none can be in flight",
        ),
    ]


def _store_rules(sizes: HopperSizes) -> list[Rule]:
    product, output = sizes.product, sizes.product.output
    reason = why_no_tensor_map(output)
    if isinstance(product, ImplicitProduct):
        reason = why_no_placed_output(product)
    if output.element.bytes not in (2, 4):
        reason = f"{output.name} is {output.dtype}; elements of 2 or 4 bytes are staged"
    return [
        Rule(
            "staging",
            ("staging",),
            lambda c: (c["staging"] == 0) | (reason is None),
            lambda c: f"the output cannot go through shared memory: {reason}",
        ),
    ]


def _fetch_rules(sizes: HopperSizes) -> list[Rule]:
    """What is fetched comes to the buffers in which whole sums leave."""
    if fetched_of(sizes.product) is None:
        return []
    return [
        Rule(
            "fetched_buffers",
            (*_TILE, "schedule", "consumers", "fetch", "staging"),
            lambda c: np.logical_not(c["fetch"]) | (c["staging"] == sizes.chunks(c)),
            lambda c: (
                f"a warpgroup finishes {sizes.chunks(c)} chunks in {c['staging']} buffers; what is "
                "fetched needs a buffer for each"
            ),
        ),
        Rule(
            "fetched_sums",
            ("exchange", "fetch"),
            lambda c: np.logical_not(c["fetch"]) | (c["exchange"] == WAYS[0]),
            lambda c: "nothing is fetched for sums that clusters exchange",
        ),
        Rule(
            "fetched_parts",
            ("fetch", "splits"),
            lambda c: np.logical_not(c["fetch"]) | (c["splits"] == 1),
            lambda c: f"nothing is fetched for {c['splits']} parts of a tile; allowed: 1",
        ),
    ]


def _size_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Tiles and clusters that suit the output."""
    product = sizes.product
    fewest = sizes.tiles({"block_m": 256, "block_n": 256, "swapped": False})
    most = max(MOST_TILES * target.multiprocessors, int(fewest))
    return [
        Rule(
            "swap",
            ("swapped",),
            lambda c: np.logical_not(c["swapped"]) | (most_rows(product) <= FEW_ROWS),
            lambda c: (
                f"computing {most_rows(product)} rows transposed gains nothing; "
                f"it may with up to {FEW_ROWS}"
            ),
        ),
        Rule(
            "tile_height",
            ("block_m", "swapped"),
            lambda c: c["block_m"] <= round_up(sizes.sides(c)[0], BLOCK),
            lambda c: f"a tile of {c['block_m']} is higher than the product's {sizes.sides(c)[0]}",
        ),
        Rule(
            "tile_width",
            ("block_n", "swapped"),
            lambda c: c["block_n"] <= round_up(sizes.sides(c)[1], 16),
            lambda c: f"a tile of {c['block_n']} is wider than the product's {sizes.sides(c)[1]}",
        ),
        Rule(
            "many_tiles",
            _TILE,
            lambda c: sizes.tiles(c) <= most,
            lambda c: f"tiles so small are {sizes.tiles(c)}; larger ones are {most} or fewer",
        ),
        Rule(
            "cluster",
            (*_TILE, "cluster"),
            lambda c: _cluster_fits(sizes, c),
            lambda c: f"the output has no {c['cluster']} tiles of {c['block_m']}x{c['block_n']}",
        ),
    ]


def _needless_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Decisions that say nothing where there are few tiles."""

    def blocks(c: Any) -> Any:
        return sizes.tiles(c) * c["splits"]

    return [
        Rule(
            "needless_turns",
            (*_TILE, "schedule", "residency", "splits"),
            lambda c: (
                (c["schedule"] == "cooperative")
                | (blocks(c) > c["residency"] * target.multiprocessors)
            ),
            lambda c: (
                "a block computes one tile, so its warpgroups have nothing to take turns with"
            ),
        ),
        Rule(
            "needless_residency",
            (*_TILE, "residency", "splits"),
            lambda c: (c["residency"] == 1) | (blocks(c) > target.multiprocessors),
            lambda c: (
                f"{blocks(c)} blocks find a multiprocessor each, "
                f"so residency={c['residency']} says nothing; allowed: 1"
            ),
        ),
    ]


def _raster_rules(sizes: HopperSizes) -> list[Rule]:
    """Orders of tiles that there are."""
    return [
        Rule(
            "hilbert",
            (*_TILE, "raster"),
            lambda c: (c["raster"] != "hilbert") | (sizes.tiles_of_one(c) <= MOST_IN_TABLE),
            lambda c: (
                f"a table of {sizes.tiles_of_one(c)} tiles is too long; {MOST_IN_TABLE} are allowed"
            ),
        ),
        Rule(
            "bands",
            ("raster", "group"),
            lambda c: (c["raster"] != "hilbert") | (c["group"] == 1),
            lambda c: "a Hilbert curve has no bands to group",
        ),
    ]


def _cluster_fits(sizes: HopperSizes, c: Any) -> Any:
    m, n = sizes.sides(c)
    cluster_m, cluster_n = sizes.cluster(c)
    return (ceil_div(m, c["block_m"]) >= cluster_m) & (ceil_div(n, c["block_n"]) >= cluster_n)


def _keeping(c: Any, more: int = 0) -> dict[str, Any]:
    """``c`` with ``more`` registers kept for loading; only a lone block moves any."""
    return {**c, "producer_registers": c["producer_registers"] + more, "residency": 1}

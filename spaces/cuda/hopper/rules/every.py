"""All rules of the Hopper template.

Most say what hardware and layouts of operands ask for: roles of warpgroups, resources (shared
memory, registers), stores. Others are on merit: tiles larger than the output, blocks without work,
decisions without an effect. Foresight rules refuse early decisions that no later ones can complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.blocks.tile_grid import grid_rules
from tilewright.spaces.cuda.hopper.rules.arrays import (
    fetch_rules,
    segment_rules,
    store_rules,
    window_rules,
)
from tilewright.spaces.cuda.hopper.rules.exchange import exchange_rules
from tilewright.spaces.cuda.hopper.rules.roles import promotion_rules, resource_rules, role_rules
from tilewright.spaces.cuda.hopper.rules.tiles import needless_rules, raster_rules, size_rules
from tilewright.spaces.cuda.hopper.sizes import TILE, HopperSizes, promotes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.rules.early import foresee
from tilewright.spaces.template import Decision, Rule


def hopper_rules(
    sizes: HopperSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the Hopper template."""
    product = sizes.product
    rules = [
        *role_rules(sizes),
        *(window_rules(product) if isinstance(product, ImplicitProduct) else ()),
        *(segment_rules(product) if segments_of(product) else ()),
        *resource_rules(sizes, target),
        *(promotion_rules(sizes) if promotes(product) else ()),
        *store_rules(sizes),
        *fetch_rules(sizes),
        *size_rules(sizes, target),
        *needless_rules(sizes, target),
        *raster_rules(sizes),
        *exchange_rules(sizes, target),
        *grid_rules(product, TILE, sizes.block, target.multiprocessors),
    ]
    by_name = {decision.name: decision for decision in decisions}
    return (*rules, *_foresight_rules(rules, by_name))


def _foresight_rules(rules: Sequence[Rule], decisions: Mapping[str, Decision]) -> list[Rule]:
    """Return early checks: after each prefix of the decisions, some completion must be allowed.

    They are those of the rules on registers, shared memory, exchanges, orders and clusters.
    """
    roles = ["block_m", "block_n", "schedule", "consumers", "producer_registers", "blocks_per_sm"]
    memory = [*TILE, "consumers", "blocks_per_sm", "depth", "store_buffers", "stages"]
    ring = [
        "block_m",
        "block_n",
        "stages",
        "consumers",
        "blocks_per_sm",
        "depth",
        "store_buffers",
        "swap_ab",
    ]
    parts = [*TILE, "merge", "blocks_per_sm", "depth", "store_buffers", "splits"]
    room = [
        *TILE,
        "merge",
        "consumers",
        "blocks_per_sm",
        "depth",
        "store_buffers",
        "stages",
        "splits",
    ]
    crew = [*TILE, "merge", *roles[2:], "splits"]
    order = [*TILE, "raster", "raster_group"]
    if "promotion_interval" in decisions:
        roles.append("promotion_interval")
    promoting = ["depth", "promotion_interval"]
    fetching = [*TILE, *roles[2:4], "blocks_per_sm", "depth", "fetch", "store_buffers", "stages"]
    return [
        rule
        for names, known in (
            *(((fetching, (8, 9)),) if "fetch" in decisions else ()),
            *(((promoting, (1,)),) if "promotion_interval" in decisions else ()),
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

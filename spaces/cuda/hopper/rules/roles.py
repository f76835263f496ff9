"""Rules on the roles of warpgroups, and on the resources that they take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.cuda.hopper.sizes import TILE, HopperSizes, promotes
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.warpgroups import (
    INSTRUCTION_REGISTERS,
    most_shared,
    too_many_of_float8,
)
from tilewright.spaces.numerics.adding import IN_ONE_OF_FLOAT8
from tilewright.spaces.template import Rule


def role_rules(sizes: HopperSizes) -> list[Rule]:
    """Return rules on how warpgroups share a tile or take turns, and move registers."""
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
            ("producer_registers", "blocks_per_sm"),
            lambda c: (c["producer_registers"] == 0) | (c["blocks_per_sm"] == 1),
            lambda c: (
                f"{c['blocks_per_sm']} blocks on a multiprocessor leave no registers worth moving; "
                "allowed: producer_registers=0"
            ),
        ),
    ]


def resource_rules(sizes: HopperSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which shared memory and registers suffice."""
    roles = ["block_m", "block_n", "consumers", "schedule", "producer_registers", "blocks_per_sm"]
    if promotes(sizes.product):
        roles.append("promotion_interval")
    return [
        Rule(
            "shared_memory",
            (*TILE, "depth", "consumers", "blocks_per_sm", "stages", "store_buffers"),
            lambda c: sizes.ring_bytes(c) <= most_shared(target, c["blocks_per_sm"]),
            lambda c: (
                f"{c['stages']} stages of {sizes.stage_bytes(c)} bytes and the staging buffers "
                f"take {sizes.ring_bytes(c)} bytes of shared memory; one of {c['blocks_per_sm']} "
                f"blocks on a multiprocessor may have {most_shared(target, c['blocks_per_sm'])}"
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
            ("block_n", "consumers", "producer_registers", "blocks_per_sm"),
            lambda c: c["block_n"] // 2 + INSTRUCTION_REGISTERS <= sizes.launch_registers(c),
            lambda c: (
                f"a wgmma of {c['block_n']} columns takes "
                f"{c['block_n'] // 2 + INSTRUCTION_REGISTERS} registers; "
                f"{sizes.threads(c)} threads start with {sizes.launch_registers(c)}"
            ),
        ),
    ]


def promotion_rules(sizes: HopperSizes) -> list[Rule]:
    """Return rules on promotion of float8 sums: only of finished products, and often enough."""
    terms = sizes.product.terms

    def added(c: Any) -> Any:
        """Return how many products wgmma adds to one sum before it is promoted."""
        return np.minimum(c["promotion_interval"] * c["depth"], terms)

    return [
        Rule(
            "promotion_interval",
            ("promotion_interval", "in_flight"),
            lambda c: (c["promotion_interval"] == 0) | (c["in_flight"] == 0),
            lambda c: "products that are added to sums have to be done; none can be in flight",
        ),
        Rule(
            "promoted",
            ("promotion_interval",),
            lambda c: (c["promotion_interval"] > 0) | (terms <= IN_ONE_OF_FLOAT8),
            lambda c: too_many_of_float8(f"{terms} products of float8"),
        ),
        Rule(
            "promoted_terms",
            ("depth", "promotion_interval"),
            lambda c: added(c) <= IN_ONE_OF_FLOAT8,
            lambda c: too_many_of_float8(f"{added(c)} products of float8"),
        ),
    ]


def _keeping(c: Any, more: int = 0) -> dict[str, Any]:
    """Return ``c`` for a lone block whose producer keeps ``more`` registers than in ``c``."""
    return {**c, "producer_registers": c["producer_registers"] + more, "blocks_per_sm": 1}

"""Rules of the chained template on Hopper, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE
from tilewright.spaces.cuda.chained_hopper.sizes import ChainedSizes
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER, cluster_rule, split_rules
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.warpgroups import (
    INSTRUCTION_REGISTERS,
    most_shared,
    too_many_of_float8,
)
from tilewright.spaces.numerics.adding import IN_ONE_OF_FLOAT8
from tilewright.spaces.rules.early import foresee
from tilewright.spaces.template import Decision, Rule

FULL = 4
"""Blocks for each multiprocessor from which on keys need not be split."""
_REGISTERS = ("warpgroups", "blocks_per_sm", "keys", "overlap", "query_storage")
_MEMORY = ("warpgroups", "blocks_per_sm", "keys", "query_buffers", "stages")
"""Decisions that determine shared memory (and, above, registers), in the order of the template."""


def chained_rules(
    sizes: ChainedSizes, target: CudaTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template, and early forms of those on registers and memory."""
    most = FULL * target.multiprocessors
    rules = (
        *_resource_rules(sizes, target),
        *_turn_rules(),
        *_extent_rules(sizes),
        *_needless_rules(sizes, target),
        *split_rules(sizes.chained.key.extent, ("warpgroups",), sizes.items, most),
        *_cluster_rules(sizes),
    )
    by_name = {decision.name: decision for decision in decisions}
    early = (
        rule
        for names in (_REGISTERS, _MEMORY)
        for rule in foresee([by_name[name] for name in names], rules, (3, 4))
    )
    return (*rules, *early)


def _resource_rules(sizes: ChainedSizes, target: CudaTarget) -> list[Rule]:
    return [
        Rule(
            "blocks_per_sm",
            ("warpgroups", "blocks_per_sm"),
            lambda c: sizes.group_registers(c) > 0,
            lambda c: (
                f"{c['blocks_per_sm']} blocks of {c['warpgroups']} multiplying warpgroups leave "
                "too few registers to each; allowed: one block, or one warpgroup"
            ),
        ),
        Rule(
            "registers",
            ("warpgroups", "blocks_per_sm", "keys", "overlap", "query_storage"),
            lambda c: sizes.registers(c) <= sizes.group_registers(c),
            lambda c: (
                f"a thread keeps sums, scores and weights in {sizes.registers(c)} registers; "
                f"it may have {sizes.group_registers(c)}"
            ),
        ),
        Rule(
            "instruction",
            ("warpgroups", "blocks_per_sm", "keys"),
            lambda c: (
                _widest(sizes, c["keys"]) // 2 + INSTRUCTION_REGISTERS <= sizes.launch_registers(c)
            ),
            lambda c: (
                f"a wgmma of {_widest(sizes, c['keys'])} columns takes "
                f"{_widest(sizes, c['keys']) // 2 + INSTRUCTION_REGISTERS} registers; "
                f"threads start with {sizes.launch_registers(c)}"
            ),
        ),
        Rule(
            "shared_memory",
            ("warpgroups", "blocks_per_sm", "keys", "stages", "query_buffers"),
            lambda c: sizes.shared_bytes(c) <= most_shared(target, c["blocks_per_sm"]),
            lambda c: (
                f"{c['stages']} stages of {c['keys']} keys and {c['query_buffers']} times the rows "
                f"take {sizes.shared_bytes(c)} bytes of shared memory; one of {c['blocks_per_sm']} "
                f"blocks may have {most_shared(target, c['blocks_per_sm'])}"
            ),
        ),
    ]


def _widest(sizes: ChainedSizes, keys: Any) -> Any:
    return keys + (sizes.width - keys) * (keys < sizes.width)


def _turn_rules() -> list[Rule]:
    return [
        Rule(
            "turns",
            ("warpgroups", "ping_pong"),
            lambda c: (c["warpgroups"] > 1) | (c["ping_pong"] == 0),
            lambda c: "one warpgroup has nobody to take turns with; allowed: ping_pong=0",
        ),
        Rule(
            "needless_beside",
            ("overlap", "chain_overlap"),
            lambda c: (c["overlap"] == 1) | (c["chain_overlap"] == 0),
            lambda c: "the chain runs after the sums; allowed: chain_overlap=0",
        ),
        Rule(
            "needless_own_keys",
            ("warpgroups", "skip_per_warpgroup"),
            lambda c: (c["warpgroups"] > 1) | (c["skip_per_warpgroup"] == 0),
            lambda c: (
                "the block's keys are those of its one warpgroup; allowed: skip_per_warpgroup=0"
            ),
        ),
    ]


def _extent_rules(sizes: ChainedSizes) -> list[Rule]:
    keys, rows = sizes.chained.key.extent, sizes.chained.row_count
    return [
        Rule(
            "keys",
            ("keys",),
            lambda c: c["keys"] <= round_up(keys, sizes.terms),
            lambda c: f"a tile of {c['keys']} keys is larger than all {keys}",
        ),
        *(_float8_rules() if sizes.has_bytes else ()),
        Rule(
            "rows",
            ("warpgroups",),
            lambda c: (c["warpgroups"] - 1) * SLICE < rows,
            lambda c: (
                f"{c['warpgroups']} warpgroups of {SLICE} rows; the last would have none of {rows}"
            ),
        ),
    ]


def _float8_rules() -> list[Rule]:
    return [
        Rule(
            "added_keys",
            ("keys",),
            lambda c: c["keys"] <= IN_ONE_OF_FLOAT8,
            lambda c: too_many_of_float8(f"the weights of {c['keys']} keys"),
        ),
    ]


def _cluster_rules(sizes: ChainedSizes) -> list[Rule]:
    def stages(c: Any) -> Any:
        return c["stages"] * sizes.stage_bytes(c)

    def parts(c: Any) -> Any:
        return c["warpgroups"] * sizes.sent_bytes(c)

    return [
        cluster_rule(),
        Rule(
            "cluster_walk",
            ("merge", "tile_scheduler"),
            lambda c: (c["merge"] != CLUSTER) | (c["tile_scheduler"] == "grid"),
            lambda c: f"a cluster has one tile and ends; its blocks are no {c['tile_scheduler']}",
        ),
        Rule(
            "cluster_memory",
            ("warpgroups", "keys", "stages", "splits", "merge"),
            lambda c: (c["merge"] != CLUSTER) | (parts(c) <= stages(c)),
            lambda c: f"parts of {parts(c)} bytes come to where stages of {stages(c)} bytes were",
        ),
    ]


def _needless_rules(sizes: ChainedSizes, target: CudaTarget) -> list[Rule]:
    """Return rules against decisions that have no effect."""
    tile = ("warpgroups", "blocks_per_sm", "tile_scheduler", "splits")

    def alone(c: Any) -> Any:
        """Return true where each block has one tile."""
        slots = target.multiprocessors * c["blocks_per_sm"]
        return (c["tile_scheduler"] == "grid") | (sizes.items(c) <= slots)

    return [
        Rule(
            "needless_walk",
            tile,
            lambda c: (c["tile_scheduler"] == "grid") | (alone(c) == 0),
            lambda c: f"{sizes.items(c)} tiles find a block each; allowed: tile_scheduler=grid",
        ),
        Rule(
            "needless_buffers",
            (*tile, "query_buffers"),
            lambda c: (c["query_buffers"] == 1) | (alone(c) == 0),
            lambda c: "a block has one tile, and so one set of rows; allowed: query_buffers=1",
        ),
        Rule(
            "needless_merge",
            ("splits", "merge"),
            lambda c: (c["splits"] > 1) | (c["merge"] == "last"),
            lambda c: f"one part needs no merging by a {c['merge']}; allowed: merge=last",
        ),
        Rule(
            "needless_section",
            ("warpgroups", "head_group"),
            lambda c: (c["head_group"] == 1) | (sizes.row_tiles(c) > 1),
            lambda c: "heads of one tile come one after the other anyway; allowed: head_group=1",
        ),
    ]

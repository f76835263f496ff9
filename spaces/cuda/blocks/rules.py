"""Rules on what blocks of products take: threads, shared memory, registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segments import most_rows
from tilewright.spaces.cuda.blocks.sizes import BlockSizes
from tilewright.spaces.cuda.residency import block_threads, resident_threads, storage_rules
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.rules.early import judged_early
from tilewright.spaces.template import Decision, Rule

LEAST_REGISTERS = 36
"""The fewest registers that addresses and counters take."""

MOST_THREADS = 512
"""The most threads of a block that are of use."""

LEAST_THREADS = 256
"""Threads that keep a multiprocessor busy."""


@dataclass(frozen=True)
class Worker:
    """A worker that keeps a tile of sums in registers: its threads, and the sums worth its
    loads."""

    name: str
    threads: int
    sums: int


def step_rule(product: Tiled, decisions: Sequence[Decision]) -> Rule:
    """Return the rule by which steps are no deeper than the product needs."""
    (depths,) = (d.values for d in decisions if d.name == "depth")
    return Rule(
        "step_depth",
        ("depth",),
        lambda c: (c["depth"] < 2 * product.terms) | (c["depth"] == depths[0]),
        lambda c: f"a step of {c['depth']} terms is twice the {product.terms} there are, or more",
    )


def thread_rules(sizes: BlockSizes, target: CudaTarget) -> list[Rule]:
    """Return rules on the threads of a block and of a multiprocessor."""
    warps = ("warp_rows", "warp_columns")
    return [
        block_threads(sizes, target, warps, MOST_THREADS),
        resident_threads(sizes, target, (*warps, "blocks_per_sm")),
    ]


def memory_rules(
    sizes: BlockSizes,
    target: CudaTarget,
    decisions: Sequence[Decision],
    tile: Sequence[str],
    others: Sequence[str],
) -> list[Rule]:
    """Return rules on the shared memory and the registers of blocks.

    The decisions ``tile`` and ``others`` make the sizes. Each rule is judged as soon as the tile is
    known, and again with the others, as if decisions still to come took their first and least
    demanding values: so sampling meets no dead ends.
    """
    least = {decision.name: decision.values[0] for decision in decisions}
    steps = [(*tile, *others[:n]) for n in range(len(others) + 1)]
    return [
        rule
        for known in (*steps, (*tile, *others, "blocks_per_sm"))
        for rule in judged_early(storage_rules(sizes, target), known, least)
    ]


def reuse_rule(product: Tiled, target: CudaTarget, reads: tuple[str, str], worker: Worker) -> Rule:
    """Return the rule by which tiles are large enough not to load operands over and over.

    A tile has ``reads[0]`` x ``reads[1]`` sums of one ``worker``. Smaller tiles are allowed if each
    product, or all together, have too few sums for larger ones.
    """
    workers = target.multiprocessors * LEAST_THREADS // worker.threads
    share = max(product.rows * product.columns * product.batches // workers, 1)
    whole = 2 ** ((most_rows(product) - 1).bit_length() + (product.columns - 1).bit_length())
    # a worker's share if one warp has a whole product
    own = max(whole * worker.threads // WARP, 1)
    least = min(worker.sums, own, 2 ** (share.bit_length() - 1))
    return Rule(
        "reuse",
        reads,
        lambda c: c[reads[0]] * c[reads[1]] >= least,
        lambda c: (
            f"a {worker.name}'s {c[reads[0]]} x {c[reads[1]]} sums use what it loads too little; "
            f"the output has {least} for each, or more"
        ),
    )


def sums_rule(reads: tuple[str, str], sums: Callable[[Any], Any], target: CudaTarget) -> Rule:
    """Return the rule by which sums, ``sums(c)`` registers of a thread, leave some for all else."""
    most = target.registers_per_thread - LEAST_REGISTERS
    return Rule(
        "sums",
        reads,
        lambda c: sums(c) <= most,
        lambda c: f"the sums of a thread take {sums(c)} registers; there are {most} for them",
    )

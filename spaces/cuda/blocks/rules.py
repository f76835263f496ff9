"""What rules out blocks for what they take: threads, shared memory, registers.

Templates differ in how decisions become sizes (:class:`BlockSizes`), not in what a multiprocessor
has of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spaces.cuda.blocks.implicit import Tiled
from spaces.cuda.blocks.segments import most_rows
from spaces.cuda.blocks.sizes import BlockSizes
from spaces.cuda.blocks.traffic import BLOCK_SHARED
from spaces.cuda.target import WARP, CudaTarget
from spaces.rules.early import judged_early
from spaces.template import Decision, Rule

LEAST_REGISTERS = 36
"""Registers that addresses and counters take at least."""

LEAST_THREADS = 256
"""Threads that keep a multiprocessor busy."""


@dataclass(frozen=True)
class Worker:
    """Who keeps a tile of sums in registers: its threads, and sums that are worth its loads."""

    name: str
    threads: int
    sums: int


def step_rule(product: Tiled, decisions: Sequence[Decision]) -> Rule:
    """Steps no deeper than the product needs."""
    (depths,) = (d.values for d in decisions if d.name == "depth")
    return Rule(
        "step_depth",
        ("depth",),
        lambda c: (c["depth"] < 2 * product.terms) | (c["depth"] == depths[0]),
        lambda c: f"a step of {c['depth']} terms is twice the {product.terms} there are, or more",
    )


def thread_rules(sizes: BlockSizes, target: CudaTarget) -> list[Rule]:
    """What a block and a multiprocessor hold in threads."""
    most = min(target.threads_per_block, 512)
    return [
        Rule(
            "threads",
            ("warp_rows", "warp_columns"),
            lambda c: sizes.threads(c) <= most,
            lambda c: (
                f"{c['warp_rows']} times {c['warp_columns']} warps are {sizes.threads(c)} "
                f"threads; allowed: {most}"
            ),
        ),
        Rule(
            "resident_threads",
            ("warp_rows", "warp_columns", "residency"),
            lambda c: sizes.threads(c) * c["residency"] <= target.threads_per_multiprocessor,
            lambda c: (
                f"{c['residency']} blocks of {sizes.threads(c)} threads are more than the "
                f"{target.threads_per_multiprocessor} a multiprocessor holds"
            ),
        ),
    ]


def memory_rules(
    sizes: BlockSizes,
    target: CudaTarget,
    decisions: Sequence[Decision],
    tile: Sequence[str],
    others: Sequence[str],
) -> list[Rule]:
    """What blocks may take of shared memory and registers; the decisions ``tile`` and ``others``
    make the sizes.

    Each rule is judged as soon as the tile is known, and again with the others, as if decisions
    still to come took their first and least demanding values: so sampling meets no dead ends.
    """
    least = {decision.name: decision.values[0] for decision in decisions}
    steps = [(*tile, *others[:n]) for n in range(len(others) + 1)]
    return [
        rule
        for known in (*steps, (*tile, *others, "residency"))
        for rule in judged_early(_memory_rules(sizes, target), known, least)
    ]


def _memory_rules(sizes: BlockSizes, target: CudaTarget) -> list[Rule]:
    return [
        Rule(
            "shared_memory",
            (),
            lambda c: sizes.shared_bytes(c) <= target.shared_per_block,
            lambda c: (
                f"the tiles of a block take {sizes.shared_bytes(c)} bytes of shared memory; "
                f"it may have {target.shared_per_block}"
            ),
        ),
        Rule(
            "resident_shared_memory",
            (),
            lambda c: (
                (sizes.shared_bytes(c) + BLOCK_SHARED) * c["residency"]
                <= target.shared_per_multiprocessor
            ),
            lambda c: (
                f"{c['residency']} blocks of {sizes.shared_bytes(c)} bytes of shared memory do "
                f"not fit the {target.shared_per_multiprocessor} of a multiprocessor"
            ),
        ),
        Rule(
            "registers",
            (),
            lambda c: sizes.registers(c) <= sizes.register_limit(target, c),
            lambda c: (
                f"a thread needs about {sizes.registers(c)} registers; {c['residency']} blocks of "
                f"{sizes.threads(c)} threads leave it {sizes.register_limit(target, c)}"
            ),
        ),
    ]


def reuse_rule(product: Tiled, target: CudaTarget, reads: tuple[str, str], worker: Worker) -> Rule:
    """Tiles of ``reads[0]`` x ``reads[1]`` sums, one for each ``worker``, are not so small that
    operands are loaded over and over, where each product and all together are large enough for
    more."""
    workers = target.multiprocessors * LEAST_THREADS // worker.threads
    share = max(product.rows * product.columns * product.batches // workers, 1)
    whole = 2 ** ((most_rows(product) - 1).bit_length() + (product.columns - 1).bit_length())
    own = max(whole * worker.threads // WARP, 1)  # where one warp has all of a product
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
    """Sums alone, ``sums(c)`` registers of a thread, leave some for all else."""
    most = target.registers_per_thread - LEAST_REGISTERS
    return Rule(
        "sums",
        reads,
        lambda c: sums(c) <= most,
        lambda c: f"the sums of a thread take {sums(c)} registers; there are {most} for them",
    )

"""Rules of the kept template on a GPU, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.cuda.kept.sizes import KeptSizes, width
from tilewright.spaces.cuda.residency import shared_memory
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP, CudaTarget
from tilewright.spaces.derivation.kept.cutting import turn_rules
from tilewright.spaces.derivation.kept.held import same_in_tile, tap_index
from tilewright.spaces.derivation.kept.view import KeptView
from tilewright.spaces.template import Rule

MOST_TERMS = 384
"""The most terms in a thread's unrolled code."""
MOST_OUTPUTS = 56
"""The most accumulators of a thread."""
LEAST_FOR_PARTS = 64
"""The fewest turns of the outermost loop that are worth sharing."""
MOST_THREADS = 2**31 - 1
"""The most threads of a launch, which 32 bits number."""
MOST_WORKSPACE = 1 << 28
BOOKKEEPING = 24
"""Registers of a thread that hold no elements."""
SIZES = ("vector", "coarsened_axis", "coarsening", "threads", "reduction_threads", "splits")
"""The decisions that the grid follows from."""


def kept_rules(view: KeptView, target: CudaTarget) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *_task_rules(view),
        *_register_rules(view, target),
        *_part_rules(view, target),
        *_room_rules(view, target),
    )


def held_elements(view: KeptView, c: Any) -> Any:
    """Return the registers of elements, such as filters, that a thread holds for all taps."""
    taps = prod(loop.extent for loop in view.taps)
    reads = [view.reads[read] for read in view.element_reads]
    bytes = sum(
        access.array.element.bytes * same_in_tile(view, access, c)
        for access in reads
        if tap_index(view, access) is not None
    )
    return (c["unroll"] == len(view.taps)) * taps * c["vector"] * bytes // 4


def registers(view: KeptView, c: Any) -> Any:
    """Return the registers of a thread, roughly.

    They hold accumulators, elements for all taps, and a row of elements that are read.
    """
    held = held_elements(view, c)
    return BOOKKEEPING + c["coarsening"] * c["vector"] + held + 2 * c["vector"] + 2 * c["prefetch"]


def _widest(view: KeptView) -> int:
    """Return the longest vector by which some array is moved."""
    moved = (*view.outputs, *(a for a in view.reads.values() if a.step(view.lane.name) == 1))
    return max(width(view, access, VECTOR_BYTES) for access in moved)


def _task_rules(view: KeptView) -> list[Rule]:
    widest = max(_widest(view), 4)

    return [
        Rule(
            "vector_width",
            ("vector",),
            lambda c: (c["vector"] <= widest) & (c["vector"] < 2 * view.lane.extent),
            lambda c: (
                f"{c['vector']} lanes of {view.lane.extent} are more than a thread moves at once: "
                f"{widest}"
            ),
        ),
        *turn_rules(view, "task"),
        Rule(
            "needless_ahead",
            ("unroll", "prefetch"),
            lambda c: (c["prefetch"] == 1) | (c["unroll"] < len(view.taps)),
            lambda c: "all taps are written out: there is no loop to unroll",
        ),
    ]


def _register_rules(view: KeptView, target: CudaTarget) -> list[Rule]:
    def terms(c: Any) -> Any:
        return KeptSizes(view, c).taps_written_out * c["coarsening"] * c["vector"] * c["prefetch"]

    return [
        Rule(
            "accumulators",
            ("vector", "coarsening"),
            lambda c: c["coarsening"] * c["vector"] <= MOST_OUTPUTS,
            lambda c: (
                f"a thread would have {c['coarsening'] * c['vector']} accumulators; allowed: "
                f"{MOST_OUTPUTS}"
            ),
        ),
        Rule(
            "code_size",
            ("vector", "coarsening", "unroll", "prefetch"),
            lambda c: terms(c) <= MOST_TERMS,
            lambda c: f"{int(terms(c))} terms would be written out; allowed: {MOST_TERMS}",
        ),
        Rule(
            "registers",
            ("vector", "coarsened_axis", "coarsening", "unroll", "prefetch", "threads"),
            lambda c: registers(view, c) <= _room(target, c),
            lambda c: (
                f"a thread takes {int(registers(view, c))} registers; {c['threads']} threads leave "
                f"it {int(_room(target, c))}"
            ),
        ),
    ]


def _room(target: CudaTarget, c: Any) -> Any:
    return np.minimum(target.registers_per_thread, 65536 // c["threads"])


def _part_rules(view: KeptView, target: CudaTarget) -> list[Rule]:
    outermost = view.taps[0].extent if view.taps else 1

    def sizes(c: Any) -> KeptSizes:
        return KeptSizes(view, c)

    return [
        Rule(
            "parts",
            ("unroll", "reduction_threads", "splits"),
            lambda c: (
                (sizes(c).parts == 1)
                | ((sizes(c).parts * 4 <= outermost) & (c["unroll"] < len(view.taps)))
            ),
            lambda c: (
                f"{sizes(c).parts} parts of {outermost} turns of the outermost loop, with "
                f"{c['unroll']} of {len(view.taps)} loops written out; parts have 4 turns at least"
            ),
        ),
        Rule(
            "whole_warps",
            ("threads", "reduction_threads"),
            lambda c: c["threads"] >= WARP * c["reduction_threads"] // 4,
            lambda c: (
                f"{c['reduction_threads']} threads for a task leave "
                f"{c['threads'] // c['reduction_threads']} neighbours; allowed: {WARP // 4}"
            ),
        ),
        Rule(
            "needless_split",
            SIZES,
            lambda c: (c["splits"] == 1) | (sizes(c).task_blocks <= 2 * target.multiprocessors),
            lambda c: (
                f"{sizes(c).task_blocks} blocks keep {target.multiprocessors} multiprocessors busy "
                "without sharing tasks"
            ),
        ),
    ]


def _room_rules(view: KeptView, target: CudaTarget) -> list[Rule]:
    def sizes(c: Any) -> KeptSizes:
        return KeptSizes(view, c)

    return [
        shared_memory(
            ("vector", "coarsening", "threads", "reduction_threads", "splits"),
            lambda c: sizes(c).shared_bytes,
            target,
        ),
        Rule(
            "grid",
            SIZES,
            lambda c: (
                (sizes(c).blocks * c["threads"] <= MOST_THREADS)
                & (sizes(c).workspace_bytes <= MOST_WORKSPACE)
            ),
            lambda c: (
                f"{sizes(c).blocks} blocks of {c['threads']} threads with "
                f"{sizes(c).workspace_bytes} bytes of workspace are too many"
            ),
        ),
    ]

"""The rules that refuse a schedule of kernels of steps on a GPU, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.residency import shared_memory
from tilewright.spaces.cuda.target import MOST_BLOCKS
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cuda.stepped.template import CudaStepped

MOST_ELEMENTS = 128
"""The most elements of a state that a thread keeps."""
MOST_UNROLLED = 256
"""The most elements of a state in the steps that are written one after the other."""
CHUNKS = (4, 8, 16, 32, 64)
"""Steps that may be copied at a time."""
BLOCK = ("row_threads", "warps", "vector")


def stepped_rules(template: CudaStepped) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_block_rules(template), *_register_rules(template), *_stage_rules(template))


def _block_rules(template: CudaStepped) -> list[Rule]:
    view, sizes = template.view, template.sizes
    lanes = view.extent(view.lane)
    return [
        Rule(
            "idle_points",
            ("row_threads",),
            lambda c: (c["row_threads"] < 2 * sizes(c).most_points) | (c["row_threads"] == 1),
            lambda c: f"{c['row_threads']} threads share {sizes(c).most_points} points",
        ),
        Rule(
            "idle_columns",
            BLOCK,
            lambda c: (sizes(c).columns < 2 * lanes) | ((c["warps"] == 1) & (c["vector"] == 1)),
            lambda c: f"a block has {sizes(c).columns} columns, of which there are {lanes}",
        ),
        Rule(
            "idle_vectors",
            ("vector",),
            lambda c: c["vector"] <= lanes,
            lambda c: f"a thread has {c['vector']} columns, of which there are {lanes}",
        ),
        Rule(
            "grid",
            BLOCK,
            lambda c: sizes(c).blocks <= MOST_BLOCKS,
            lambda c: f"{sizes(c).blocks} blocks are more than a grid has: {MOST_BLOCKS}",
        ),
    ]


def _register_rules(template: CudaStepped) -> list[Rule]:
    target, sizes = template.cuda, template.sizes

    def room(c: object) -> object:
        share = target.registers_per_multiprocessor // sizes(c).threads // 8 * 8
        return np.minimum(target.registers_per_thread, share)

    return [
        Rule(
            "elements",
            ("row_threads", "vector"),
            lambda c: sizes(c).state <= MOST_ELEMENTS,
            lambda c: f"a thread keeps {sizes(c).state} elements; allowed: {MOST_ELEMENTS}",
        ),
        Rule(
            "registers",
            BLOCK,
            lambda c: sizes(c).registers <= room(c),
            lambda c: f"a thread takes {sizes(c).registers} registers; there are {room(c)}",
        ),
        Rule(
            "unrolled",
            ("row_threads", "vector", "unroll"),
            lambda c: (c["unroll"] == 1) | (c["unroll"] * sizes(c).state <= MOST_UNROLLED),
            lambda c: (
                f"{c['unroll']} steps of {sizes(c).state} elements are written one after the "
                f"other; allowed: {MOST_UNROLLED} elements"
            ),
        ),
    ]


def _stage_rules(template: CudaStepped) -> list[Rule]:
    view, target, sizes = template.view, template.cuda, template.sizes
    extent, least = view.extent(view.position), CHUNKS[0]
    if not template.copies:
        return []
    return [
        Rule(
            "idle_steps",
            ("steps",),
            lambda c: (c["steps"] < 2 * extent) | (c["steps"] == least),
            lambda c: f"{c['steps']} steps are copied at a time, of {extent}",
        ),
        Rule(
            "idle_stages",
            ("steps", "stages"),
            lambda c: (c["stages"] == 2) | (c["stages"] <= ceil_div(extent, c["steps"])),
            lambda c: f"{c['stages']} stages have {sizes(c).chunks} times {c['steps']} steps",
        ),
        shared_memory((*BLOCK, "steps", "stages"), lambda c: sizes(c).shared_bytes, target),
    ]

"""The rules that refuse a schedule of scans on a GPU, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cuda.occupancy import SECTOR
from tilewright.spaces.cuda.scan.sizes import ROWS, ScanSizes
from tilewright.spaces.cuda.target import MOST_BLOCKS, WARP
from tilewright.spaces.template import Rule

if TYPE_CHECKING:
    from tilewright.spaces.cuda.scan.template import CudaScan

MOST_GROUPS = 32
"""The most groups that share a row in a block: each thread reads the states of all."""
MOST_ELEMENTS = 64
"""The most elements of all sums that a thread holds."""
MOST_CHUNKS = 1 << 13
"""The most blocks that share a row, each of which reads the states of all before."""
ENOUGH = 4
"""Blocks of a multiprocessor that keep it busy, roughly: no more need to share rows."""
LONG_WALK, BUSY = 16, 512
"""Tiles that a block may walk along alone, unless a multiprocessor has so many threads."""
THREADS = ("row_threads", "block_rows")
TILE = ("row_threads", "vector", "vectors")


def scan_rules(template: CudaScan) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (*_thread_rules(template), *_tile_rules(template), *_split_rules(template))


def _thread_rules(template: CudaScan) -> list[Rule]:
    view, target, sizes = template.view, template.cuda, template.sizes
    bytes, rows = template.arrays.element_bytes, view.row_count
    across = min(SECTOR, rows * bytes)
    along = min(SECTOR, view.column_count * bytes, WARP * template.arrays.widest * bytes)

    def side(c: Any) -> Any:
        lanes = np.minimum(c["row_threads"], WARP) * c["vector"]
        return np.where(c["lanes"] == ROWS, c["block_rows"], lanes) * bytes

    def least(c: Any) -> Any:
        return np.where(c["lanes"] == ROWS, across, along)

    return [
        Rule(
            "threads",
            THREADS,
            lambda c: (
                (sizes(c).threads % WARP == 0) & (sizes(c).threads <= target.threads_per_block)
            ),
            lambda c: (
                f"a block of {sizes(c).threads} threads; allowed: multiples of {WARP} up to "
                f"{target.threads_per_block}"
            ),
        ),
        Rule(
            "idle_rows",
            THREADS,
            lambda c: (c["block_rows"] < 2 * rows) | (sizes(c).threads == WARP),
            lambda c: f"a block of {c['block_rows']} rows, of which there are {rows}",
        ),
        Rule(
            "groups",
            ("lanes", "row_threads"),
            lambda c: sizes(c).groups <= MOST_GROUPS,
            lambda c: f"{sizes(c).groups} groups share a row; allowed: {MOST_GROUPS}",
        ),
        Rule(
            "segments",
            ("lanes", "vector", *THREADS),
            lambda c: side(c) >= least(c),
            lambda c: f"lanes read {side(c)} bytes side by side; memory gives {least(c)} at a time",
        ),
    ]


def _tile_rules(template: CudaScan) -> list[Rule]:
    view, target, sizes = template.view, template.cuda, template.sizes
    sums = len(view.running)

    def room(c: Any) -> Any:
        share = target.registers_per_multiprocessor // sizes(c).threads // 8 * 8
        return np.minimum(target.registers_per_thread, share)

    return [
        Rule(
            "idle_threads",
            TILE,
            lambda c: (sizes(c).tile < 2 * view.column_count) | (sizes(c).elements == 1),
            lambda c: f"a tile of {sizes(c).tile} columns of {view.column_count}",
        ),
        Rule(
            "elements",
            ("vector", "vectors"),
            lambda c: (sums * sizes(c).elements <= MOST_ELEMENTS) | (c["vectors"] == 1),
            lambda c: (
                f"a thread would hold {sums * sizes(c).elements} sums; allowed: {MOST_ELEMENTS}"
            ),
        ),
        Rule(
            "registers",
            (*THREADS, "vector", "vectors"),
            lambda c: sizes(c).registers <= room(c),
            lambda c: (
                f"a thread takes {sizes(c).registers} registers; {sizes(c).threads} threads leave "
                f"it {room(c)}"
            ),
        ),
    ]


def _split_rules(template: CudaScan) -> list[Rule]:
    target, sizes = template.cuda, template.sizes
    most = ENOUGH * target.multiprocessors

    def fits(s: ScanSizes) -> Any:
        return (s.chunks > 1) & (s.chunks <= MOST_CHUNKS) & (s.row_tiles <= most)

    def walks_alone(s: ScanSizes) -> Any:
        return (s.chunks >= LONG_WALK) & (s.row_tiles * s.threads < BUSY * target.multiprocessors)

    return [
        Rule(
            "shared_rows",
            (*THREADS, "vector", "vectors", "parallel_over"),
            lambda c: np.logical_not(sizes(c).splits) | fits(sizes(c)),
            lambda c: (
                f"{sizes(c).chunks} blocks share each of {sizes(c).row_tiles} tiles of rows; "
                f"allowed: 2 to {MOST_CHUNKS} blocks of {most} tiles at most"
            ),
        ),
        Rule(
            "few_threads",
            (*THREADS, "vector", "vectors", "parallel_over"),
            lambda c: sizes(c).splits | ~fits(sizes(c)) | ~walks_alone(sizes(c)),
            lambda c: (
                f"{sizes(c).row_tiles} blocks of {sizes(c).threads} threads walk along "
                f"{sizes(c).chunks} tiles each, while most of the GPU is idle"
            ),
        ),
        Rule(
            "grid",
            (*THREADS, "vector", "vectors", "parallel_over"),
            lambda c: sizes(c).blocks <= MOST_BLOCKS,
            lambda c: f"{sizes(c).blocks} blocks are more than a grid has: {MOST_BLOCKS}",
        ),
    ]

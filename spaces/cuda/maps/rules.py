"""Rules of the map template on a GPU, and the sentences that say why a schedule is refused."""

from __future__ import annotations

from typing import Any

from tilewright.spaces.cuda.maps.sizes import MapSizes, widest
from tilewright.spaces.cuda.occupancy import SECTOR
from tilewright.spaces.cuda.residency import shared_memory
from tilewright.spaces.cuda.target import MOST_BLOCKS, CudaTarget
from tilewright.spaces.derivation.maps.order import covering, extent_rules, order_rule
from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.template import Rule

MOST_BYTES = 512
"""The most bytes of all arrays that one thread moves: more do not fit its registers at once."""
LEAST_THREADS = 64
"""The fewest threads of a block; a tile may be wider than the plane to have them."""


def map_rules(plane: Plane, target: CudaTarget) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    return (
        *_vector_rules(plane),
        *_extent_rules(plane),
        *_thread_rules(plane, target),
        order_rule(plane),
    )


def _vector_rules(plane: Plane) -> list[Rule]:
    most = widest(plane)
    return [
        Rule(
            "vector_width",
            ("vector",),
            lambda c: c["vector"] <= most,
            lambda c: f"nothing is moved by vectors of {c['vector']} elements; allowed: {most}",
        ),
        Rule(
            "vector_rows",
            ("tile_rows", "vector"),
            lambda c: (c["tile_rows"] >= c["vector"]) | (not plane.transposed),
            lambda c: f"a tile of {c['tile_rows']} rows has no vectors of {c['vector']} along rows",
        ),
    ]


def _extent_rules(plane: Plane) -> list[Rule]:
    """Return rules on the extents of tiles.

    They are hardly larger than the plane, and no narrower than the sectors of memory.
    """
    tallest, broadest = covering(plane.height), covering(plane.width)
    written = max(output.array.element.bytes for output in plane.view.outputs)
    read = max((access.array.element.bytes for access in plane.transposed), default=0)
    least_rows = min(tallest, SECTOR // read) if read else 1
    least_columns = min(broadest, SECTOR // written)
    broadest = max(broadest, LEAST_THREADS // tallest)
    return [
        Rule(
            "few_elements",
            ("vector", "tile_rows"),
            lambda c: c["tile_rows"] * broadest >= c["vector"] * LEAST_THREADS,
            lambda c: (
                f"{c['tile_rows']} rows of at most {broadest} columns are no vector of "
                f"{c['vector']} for each of {LEAST_THREADS} threads"
            ),
            implied=True,
        ),
        *extent_rules(plane, (least_rows, tallest), (least_columns, broadest)),
    ]


def _thread_rules(plane: Plane, target: CudaTarget) -> list[Rule]:
    def sizes(c: Any) -> MapSizes:
        return MapSizes(plane, c)

    reads = ("tile_rows", "tile_columns", "vector", "threads")
    return [
        Rule(
            "idle_threads",
            reads,
            lambda c: (sizes(c).chunks >= 1) & (sizes(c).lane_columns >= 1),
            lambda c: (
                f"{c['tile_rows']} x {c['tile_columns']} elements are no vector of {c['vector']} "
                f"for each of {c['threads']} threads"
            ),
        ),
        Rule(
            "thread_bytes",
            ("tile_rows", "tile_columns", "threads"),
            lambda c: sizes(c).thread_bytes <= MOST_BYTES,
            lambda c: f"a thread would move {sizes(c).thread_bytes} bytes; allowed: {MOST_BYTES}",
        ),
        shared_memory(("tile_rows", "tile_columns"), lambda c: sizes(c).shared_bytes, target),
        Rule(
            "grid",
            ("tile_rows", "tile_columns"),
            lambda c: sizes(c).tiles <= MOST_BLOCKS,
            lambda c: f"{sizes(c).tiles} tiles are more blocks than a grid has: {MOST_BLOCKS}",
        ),
    ]

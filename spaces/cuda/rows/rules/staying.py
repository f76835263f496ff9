"""Rules on persistent blocks: what they copy ahead, and what they keep from tile to tile."""

from __future__ import annotations

from typing import Any

from tilewright.spaces.cuda.rows.rules.holding import MOST_ELEMENTS
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Rule


def staying_rules(sizes: RowSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which blocks are persistent only if tiles outnumber them.

    Only persistent blocks copy tiles ahead or keep operands from one tile to the next.
    """
    reads = ("vector", "row_threads", "block_rows", "thread_rows", "cluster", "unroll")

    def written(c: Any) -> Any:
        return sizes.turns(c) * c["vector"] * c["thread_rows"]

    return [
        Rule(
            "needless_loop",
            (*reads, "blocks_per_sm", "tile_scheduler"),
            lambda c: (
                (c["tile_scheduler"] == "tiles")
                | (sizes.tiles(c) * c["cluster"] > c["blocks_per_sm"] * target.multiprocessors)
            ),
            lambda c: (
                f"{sizes.tiles(c)} tiles are no more than the GPU has room for; "
                "blocks need no loop over them"
            ),
        ),
        Rule(
            "stages",
            ("row_storage", "prefetch", "tile_scheduler", "stages"),
            lambda c: (
                (c["stages"] == 1)
                | (
                    (c["row_storage"] != "memory")
                    & (c["prefetch"] == 0)
                    & (c["tile_scheduler"] == "persistent")
                )
            ),
            lambda c: "only blocks that go over tiles copy some ahead, of what is used repeatedly",
        ),
        Rule(
            "row_invariants",
            ("row_storage", "prefetch", "row_invariants"),
            lambda c: (
                (c["row_invariants"] == "again")
                | (c["prefetch"] == 0) & (c["row_storage"] != "memory")
            ),
            lambda c: "what all rows share stays in registers where elements of rows stay, too",
        ),
        Rule(
            "common_size",
            ("vector", "row_threads", "thread_rows", "cluster", "unroll", "row_invariants"),
            lambda c: (c["row_invariants"] == "again") | (written(c) <= MOST_ELEMENTS),
            lambda c: (
                f"what all rows share stays in registers that code names, {written(c)} elements; "
                f"allowed: {MOST_ELEMENTS}"
            ),
        ),
        Rule(
            "idle_clusters",
            ("cluster", "tile_scheduler", "idle_clusters"),
            lambda c: (
                (c["idle_clusters"] == 0)
                | (c["cluster"] > 1) & (c["tile_scheduler"] == "persistent")
            ),
            lambda c: "only clusters that stay leave room for fewer of them",
        ),
    ]

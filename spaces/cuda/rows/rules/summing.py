"""Rules on sums over all rows, which threads keep in registers for their columns."""

from __future__ import annotations

from tilewright.spaces.cuda.rows.sizes import MOST_PART_ROWS, RowSizes, partial_limit
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Rule


def sum_rules(sizes: RowSizes, target: CudaTarget) -> list[Rule]:
    """Return rules by which a thread names all its columns, adds up rows that are not too many, and
    the sums of all parts stay in a share of the L2 cache."""
    columns = ("vector", "row_threads", "thread_rows", "cluster", "row_storage", "unroll")
    walks = ("vector", "row_threads", "block_rows", "thread_rows", "cluster", "unroll")
    most = partial_limit(target)
    return [
        Rule(
            "sums_in_registers",
            columns,
            lambda c: sizes.steps(c) == 1,
            lambda c: (
                f"a thread goes over its columns in {sizes.steps(c)} steps; registers hold sums "
                "of one"
            ),
        ),
        Rule(
            "part_rows",
            (*walks, "blocks_per_sm", "tile_scheduler"),
            lambda c: sizes.part_rows(target, c) <= MOST_PART_ROWS,
            lambda c: (
                f"a thread adds up {sizes.part_rows(target, c)} rows; allowed: {MOST_PART_ROWS}"
            ),
        ),
        Rule(
            "partial_sums",
            (*walks, "blocks_per_sm", "tile_scheduler"),
            lambda c: sizes.partial_bytes(target, c) <= most,
            lambda c: (
                f"sums of all parts take {sizes.partial_bytes(target, c)} bytes; allowed: {most}"
            ),
        ),
    ]

"""The rules that refuse a schedule of sums over short windows, each with its sentence.

Tiles, workers and equal blocks have the rules of plain products (``spaces.cpu.blocked.rules``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.blocked.blocking import blocks_of
from tilewright.spaces.cpu.blocked.rule_context import Cut, TileContext
from tilewright.spaces.cpu.blocked.rules import distinct, tile_rules, worker_rules
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.winograd.blocking import Blocking, blocking, squares_of
from tilewright.spaces.cpu.winograd.view import LEAST_OUTPUTS, SquareWindows
from tilewright.spaces.derivation.products.short_windows import MOST_READS, short_windows
from tilewright.spaces.numerics.adding import error_of_sum
from tilewright.spaces.template import Decision, Rule

DEVIATIONS = 16.0
"""Standard deviations of an output's error that must be allowed: the worst of 10**5 outputs was off
by some 6, at 4 to 512 channels and images of any size."""


@dataclass(frozen=True)
class _Context(TileContext):
    view: SquareWindows

    def blocking(self, c: Any, **changed: Any) -> Blocking:
        """Compute all extents, with the least value of each decision that is not given."""
        known = {name: values[0] for name, values in self.values.items()}
        return blocking(self.view, self.lanes, {**known, **c, **changed})

    def square_blocks(self, c: Any, bound: Any) -> Any:
        """Compute the number of a worker's blocks of squares under the ``bound`` of a block."""
        squares = squares_of(self.view, c["output_tile"])
        tiles = ceil_div(ceil_div(squares, c["tile_rows"]), c["row_workers"])
        return blocks_of(tiles, bound, c["tile_rows"])

    def column_blocks(self, c: Any, bound: Any) -> Any:
        """Compute the number of a worker's blocks of columns under the ``bound`` of a block."""
        width = c["tile_vectors"] * self.lanes
        tiles = ceil_div(ceil_div(self.view.column.extent, width), c["column_workers"])
        return blocks_of(tiles, bound, width)


def winograd_rules(
    view: SquareWindows, target: CpuTarget, decisions: Sequence[Decision]
) -> tuple[Rule, ...]:
    """Return all rules of the template."""
    values = {decision.name: np.array(decision.values) for decision in decisions}
    cut = Cut(view.square_count(LEAST_OUTPUTS), view.column.extent)
    context = _Context(cut, target, values, view)
    columns = ("tile_vectors", "column_workers")
    return (
        *tile_rules(context),
        *_size_rules(context),
        *_worker_rules(context),
        *_memory_rules(context),
        distinct(
            context,
            "block_tiles",
            ("output_tile", "tile_rows", "row_workers"),
            context.square_blocks,
        ),
        distinct(context, "block_columns", columns, context.column_blocks),
    )


def deviations(view: SquareWindows, outputs: int) -> float:
    """Compute how many standard deviations of an output's error are allowed.

    Products of c channels round c times, each time by half a unit of a sum whose magnitude grows
    like that of random terms, and their factors are off by about a unit. The allowance is that of
    the plain sum, whose terms are a fourth in the mean if factors are uniform in [-1, 1).
    """
    channels = view.channels.extent
    terms = channels * view.taps**2
    size = terms / 4.0
    _, allowed = error_of_sum(terms, "float32", ("float32", "float32"), size, size)
    unit = float(np.finfo(np.float32).eps)
    products = channels / (6.0 * 2.0**0.5) + channels**0.5
    return allowed / unit / (short_windows(outputs, view.taps).growth * products / 3.0)


def _size_rules(context: _Context) -> list[Rule]:
    view = context.view
    outputs = context.values["output_tile"]
    exact = np.zeros(int(outputs[-1]) + 1)
    for n in outputs.tolist():
        exact[n] = deviations(view, n) if n + view.taps - 1 <= MOST_READS else 0.0
    return [
        Rule(
            "exact",
            ("output_tile",),
            lambda c: exact[c["output_tile"]] >= DEVIATIONS,
            lambda c: (
                f"squares of {c['output_tile']} x {c['output_tile']} outputs of windows of "
                f"{view.taps} x {view.taps} have errors of which {exact[c['output_tile']]:.1f} "
                f"standard deviations are allowed; {DEVIATIONS:.0f} are needed"
            ),
        ),
        Rule(
            "squares_high",
            ("output_tile", "tile_rows"),
            lambda c: c["tile_rows"] <= squares_of(view, c["output_tile"]),
            lambda c: (
                f"a tile of {c['tile_rows']} rows is higher than the "
                f"{squares_of(view, c['output_tile'])} squares of "
                f"{c['output_tile']} x {c['output_tile']}"
            ),
        ),
    ]


def _worker_rules(context: _Context) -> list[Rule]:
    view = context.view
    squares = view.square_count(LEAST_OUTPUTS)
    reads = LEAST_OUTPUTS + view.taps - 1
    work = float(squares) * reads**2 * view.channels.extent * view.column.extent
    most = {
        "row_workers": view.square_count(int(context.values["output_tile"][-1])),
        "column_workers": ceil_div(view.column.extent, context.lanes),
    }
    return worker_rules(context, work, most)


def _memory_rules(context: _Context) -> list[Rule]:
    view, target = context.view, context.target
    shared = ("output_tile", "tile_rows", "tile_vectors", "row_workers", "column_workers")

    def squares(c: Any) -> Any:
        b = context.blocking(c)
        return FLOAT * b.reads**2 * b.block_squares * (view.channels.extent + b.tile_columns)

    def filters(c: Any) -> Any:
        b = context.blocking(c)
        return FLOAT * b.reads**2 * view.channels.extent * b.block_columns

    def rule(name: str, what: str, bound: str, size: Any) -> Rule:
        return Rule(
            name,
            (*shared, bound),
            lambda c: (size(c) <= target.l3_bytes) | (c[bound] == context.values[bound][0]),
            lambda c: f"{what} take {size(c)} bytes; they must fit in L3 ({target.l3_bytes})",
        )

    return [
        rule("l3_squares", "a block of transformed squares and products", "block_tiles", squares),
        rule("l3_filters", "a block of transformed filters", "block_columns", filters),
    ]

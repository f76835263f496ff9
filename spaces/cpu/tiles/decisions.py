"""The values of decisions about register tiles, for all templates, and the registers that tiles
take."""

from __future__ import annotations

from typing import Any

from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.template import Rule

TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28)
TILE_VECTORS = (1, 2, 3, 4)
WHOLE_TILE_ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14)
"""The rows of tiles that divide blocks of rows; :func:`whole_tile_rules` says which may be."""
MANY_REGISTERS = 32
"""From this many registers on, one step of a tile is so much work that more unrolling gains
nothing."""


def unrolls(cpu: CpuTarget) -> tuple[int, ...]:
    """Return the numbers of steps of the depth in a turn of the innermost loop."""
    return (1, 2) if cpu.vector_registers >= MANY_REGISTERS else (1, 2, 4)


def registers(rows: Any, vectors: Any) -> Any:
    """Compute the vector registers of a tile: accumulators, a row of the right operand, a
    broadcast."""
    return rows * vectors + vectors + 1


def whole_tile_rules(tile: str, cpu: CpuTarget) -> list[Rule]:
    """Return the rules that a tile fits the registers, and that blocks of ``rows`` are whole tiles.

    The tile is that of the decisions ``TILE_rows`` and ``TILE_vectors``, for the name ``tile``.
    """
    rows, vectors = f"{tile}_rows", f"{tile}_vectors"
    return [
        Rule(
            f"{tile}_registers",
            (rows, vectors),
            lambda c: registers(c[rows], c[vectors]) <= cpu.vector_registers,
            lambda c: (
                f"a tile of {c[rows]} rows and {c[vectors]} vectors takes "
                f"{registers(c[rows], c[vectors])} vector registers; "
                f"there are {cpu.vector_registers}"
            ),
        ),
        Rule(
            f"{tile}_share",
            ("rows", rows),
            lambda c: c["rows"] % c[rows] == 0,
            lambda c: f"{c['rows']} rows of a block are no multiple of {c[rows]} of a tile",
        ),
    ]

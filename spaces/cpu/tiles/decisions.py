"""What can be decided of a register tile, whatever template cuts a product into such, and the
registers that it takes."""

from __future__ import annotations

from typing import Any

from tilewright.spaces.cpu.target import CpuTarget

TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28)
TILE_VECTORS = (1, 2, 3, 4)
MANY_REGISTERS = 32
"""Registers from which a tile has work enough in one step that much unrolling gains nothing."""


def unrolls(cpu: CpuTarget) -> tuple[int, ...]:
    """Steps of the depth in a turn of the innermost loop."""
    return (1, 2) if cpu.vector_registers >= MANY_REGISTERS else (1, 2, 4)


def registers(rows: Any, vectors: Any) -> Any:
    """Vector registers a tile takes: accumulators, a row of the right operand, a broadcast."""
    return rows * vectors + vectors + 1

"""Loops around all steps of a register tile, and the number of steps that one accumulator takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

MOST_STEPS = 512
"""The most steps that are added to one accumulator before it is added to the sums in memory."""
MOST_STEPS_OF_TURNS = 1024
"""The most steps of several turns, which are short, that are added to one accumulator."""


@dataclass(frozen=True)
class Turn:
    """A loop of at most ``extent`` turns around all steps; each turn advances a by ``left`` and b
    by ``right`` elements."""

    extent: int
    left: int
    right: int


def around_blocks(turns: Sequence[Turn], steps: int) -> int:
    """Return how many of the loops, the outermost ones, are around a block of steps of one
    accumulator.

    They are as few as leave it no more than :data:`MOST_STEPS_OF_TURNS`, or all of them; each turn
    of the innermost loop has ``steps`` steps.
    """
    inside = (steps * prod(turn.extent for turn in turns[n:]) for n in range(len(turns)))
    return next((n for n, found in enumerate(inside) if found <= MOST_STEPS_OF_TURNS), len(turns))

"""Loops around all steps of a register tile, and how much of them one accumulator takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

MOST_STEPS = 512
"""Steps that are added to one accumulator, before that is added to the sums in memory."""
MOST_STEPS_OF_TURNS = 1024
"""The same of several turns, which are short."""


@dataclass(frozen=True)
class Turn:
    """A loop around all steps, of at most ``extent`` turns; a and b are ``left`` and ``right``
    elements further on in the next one."""

    extent: int
    left: int
    right: int


def around_blocks(turns: Sequence[Turn], steps: int) -> int:
    """How many of the loops, the outermost, are around a block of what one accumulator takes: as
    few as leave it no more than :data:`MOST_STEPS_OF_TURNS`, or all, where each turn has so many
    ``steps``.
    """
    inside = (steps * prod(turn.extent for turn in turns[n:]) for n in range(len(turns)))
    return next((n for n, found in enumerate(inside) if found <= MOST_STEPS_OF_TURNS), len(turns))

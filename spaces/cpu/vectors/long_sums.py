"""The C of long sums that are added up in blocks, so that their rounding error does not grow.

An accumulator ``s`` takes the terms of a block; then ``tw_add_block``
(:mod:`spaces.cpu.vectors.lanes`) adds it to ``s_sum``, the sum of earlier blocks, which rounding
has made too great by ``s_excess``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.mapping_emit import indented

BLOCK = 32
"""The number of terms of a block."""


def parts(state: str) -> tuple[str, str]:
    """Return the C variables of the earlier blocks: their sum, and its excess."""
    return f"{state}_sum", f"{state}_excess"


def declared(states: Sequence[str], turn: str) -> list[str]:
    """Declare the variables of earlier blocks of some accumulators, and one that counts each
    ``turn``."""
    return [*begun(states), f"unsigned {turn} = 0;"]


def begun(states: Sequence[str]) -> list[str]:
    """Declare the variables of earlier blocks of some accumulators."""
    return [f"vf {name} = tw_set(0);" for state in states for name in parts(state)]


def turn_ends(
    states: Sequence[str], turn: str, turns: int, before: Sequence[str] = ()
) -> list[str]:
    """Return the lines that end a turn: every ``turns`` turns they end a block, which is added
    after the lines ``before``."""
    return [f"if (++{turn} % {turns} == 0) {{", *indented([*before, *ended(states)]), "}"]


def ended(states: Sequence[str]) -> list[str]:
    """Return the lines that end a block of some accumulators, which begin the next one."""
    return [line for s in states for line in (_added(s), f"{s} = tw_set(0);")]


def joined(states: Sequence[str]) -> list[str]:
    """Return the lines that add up all blocks in the accumulators."""
    return [line for s in states for line in (_added(s), f"{s} = {parts(s)[0]};")]


def _added(state: str) -> str:
    total, excess = parts(state)
    return f"tw_add_block(&{total}, &{excess}, {state});"

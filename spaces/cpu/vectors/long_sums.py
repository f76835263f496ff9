"""The C of sums so long that they are added up in blocks, so that their error does not grow.

An accumulator ``s`` takes in so many terms; then ``tw_add_block`` (:mod:`spaces.cpu.vectors.lanes`)
adds it to ``s_sum``, the sum of the blocks before, which rounding made too great by ``s_excess``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.mapping_emit import indented

BLOCK = 32
"""Terms of a block."""


def parts(state: str) -> tuple[str, str]:
    """The C variables of the blocks before: their sum, and its excess."""
    return f"{state}_sum", f"{state}_excess"


def declared(states: Sequence[str], turn: str) -> list[str]:
    """The variables of blocks before of some accumulators, and one that counts each ``turn``."""
    names = [name for state in states for name in parts(state)]
    return [*(f"vf {name} = tw_set(0);" for name in names), f"unsigned {turn} = 0;"]


def turn_ends(
    states: Sequence[str], turn: str, turns: int, before: Sequence[str] = ()
) -> list[str]:
    """The end of a turn: every so many ``turns`` a block ends, and is added after the lines
    ``before``."""
    ends = [*before, *(line for s in states for line in (_added(s), f"{s} = tw_set(0);"))]
    return [f"if (++{turn} % {turns} == 0) {{", *indented(ends), "}"]


def joined(states: Sequence[str]) -> list[str]:
    """All blocks as one in the accumulators."""
    return [line for s in states for line in (_added(s), f"{s} = {parts(s)[0]};")]


def _added(state: str) -> str:
    total, excess = parts(state)
    return f"tw_add_block(&{total}, &{excess}, {state});"

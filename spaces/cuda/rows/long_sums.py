"""Sums of a thread that are added up in blocks, so that their error does not grow.

A state ``s0[k]`` is of the elements of a block; then ``tw_add_block`` adds it to ``sum0[k]``, that
of the blocks before, which rounding made too great by ``excess0[k]`` (Kahan, Further remarks on
reducing truncation errors, CACM 8, 1965). None is known of an infinite one,
nor of one that has just become infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.mapping_emit import indented

BLOCK = 64
"""Elements of a block, unless a thread has more in a step."""
HELPER = """\
TW_INLINE void tw_add_block(T &sum, T &excess, T block) {
  const T term = block - excess, total = sum + term, e = (total - sum) - term;
  sum = total;
  excess = e - e == (T)0 ? e : (T)0;
}
"""
"""The function, on the type ``T``."""


def step_ends(numbers: Sequence[int], rows: int, steps: int) -> list[str]:
    """The end of a ``step``, every so many of which a block of the states with these numbers ends,
    of each of so many rows."""
    ends = per_row(rows, _added(numbers))
    return [f"if ((step + 1) % {steps} == 0) {{", *indented(ends), "}"] if ends else []


def joined(numbers: Sequence[int], rows: int) -> list[str]:
    """All blocks as one, in the states."""
    return per_row(rows, [*_added(numbers), *(f"s{n}[k] = sum{n}[k];" for n in numbers)])


def whole(number: int) -> str:
    """C text of all blocks of a state, while it takes in elements."""
    return f"((sum{number}[k] - excess{number}[k]) + s{number}[k])"


def per_row(rows: int, lines: Sequence[str]) -> list[str]:
    """The lines for each row ``k`` that a thread has at once."""
    head = ["#pragma unroll", f"for (int k = 0; k < {rows}; k++) {{"]
    return [*head, *indented(lines), "}"] if lines else []


def _added(numbers: Sequence[int]) -> list[str]:
    return [f"tw_add_block(sum{n}[k], excess{n}[k], s{n}[k]); s{n}[k] = {{}};" for n in numbers]

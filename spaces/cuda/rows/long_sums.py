"""Sums of a thread that are added up in blocks (:mod:`spaces.cuda.block_sums`).

A state ``s0[k]`` is of the elements of a block, ``sum0[k]`` of the blocks before. Where these are
many, ``excess0[k]`` is what rounding made it too great by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.block_sums import FEW


@dataclass(frozen=True)
class LongSums:
    """The blocks of each of so many ``rows`` of a thread, which end every ``block_steps`` of its
    ``steps``; no sum is long if that is 0."""

    rows: int
    steps: int
    block_steps: int

    @property
    def _few(self) -> bool:
        return ceil_div(self.steps, self.block_steps) <= FEW

    def variables(self, number: int) -> tuple[str, ...]:
        """The names of what is kept of the blocks of a state before its own."""
        return (f"sum{number}",) if self._few else (f"sum{number}", f"excess{number}")

    def declared(self, real: str, number: int) -> str:
        """The line that declares them."""
        names = (f"{name}[{self.rows}] = {{}}" for name in self.variables(number))
        return f"{real} {', '.join(names)};"

    def step_ends(self, numbers: Sequence[int]) -> list[str]:
        """The end of a ``step``, every so many of which a block of these states ends."""
        ends = per_row(self.rows, list(map(self._added, numbers)))
        test = f"if ((step + 1) % {self.block_steps} == 0) {{"
        return [test, *indented(ends), "}"] if ends else []

    def joined(self, numbers: Sequence[int]) -> list[str]:
        """All blocks as one, in the states."""
        whole = [f"s{n}[k] = sum{n}[k];" for n in numbers]
        return per_row(self.rows, [*map(self._added, numbers), *whole])

    def whole(self, number: int) -> str:
        """C text of all blocks of a state, while it takes in elements."""
        before, *excess = (f"{name}[k]" for name in self.variables(number))
        before = f"({before} - {excess[0]})" if excess else before
        return f"({before} + s{number}[k])"

    def _added(self, n: int) -> str:
        if self._few:
            return f"sum{n}[k] += s{n}[k]; s{n}[k] = {{}};"
        return f"tw_add_block(sum{n}[k], excess{n}[k], s{n}[k]); s{n}[k] = {{}};"


def per_row(rows: int, lines: Sequence[str]) -> list[str]:
    """The lines for each row ``k`` that a thread has at once."""
    head = ["#pragma unroll", f"for (int k = 0; k < {rows}; k++) {{"]
    return [*head, *indented(lines), "}"] if lines else []

"""Long sums of a thread, added up in blocks to bound their error (``spaces.cuda.block_sums``).

The state ``s0[k]`` is the sum of a block's elements, ``sum0[k]`` of the blocks before. If blocks
are many, ``excess0[k]`` is the amount by which rounding made that sum too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.block_sums import FEW
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class LongSums:
    """The blocks of the sums of ``rows`` rows of a thread.

    A block ends every ``block_steps`` of its ``steps``; sums are not long if that is 0.
    """

    rows: int
    steps: int
    block_steps: int

    @property
    def _few(self) -> bool:
        return ceil_div(self.steps, self.block_steps) <= FEW

    def variables(self, number: int) -> tuple[str, ...]:
        """Return the names of the variables for all earlier blocks of state ``number``."""
        return (f"sum{number}",) if self._few else (f"sum{number}", f"excess{number}")

    def declared(self, real: str, number: int) -> str:
        """Return the declaration of these variables, in the C type ``real``."""
        names = (f"{name}[{self.rows}] = {{}}" for name in self.variables(number))
        return f"{real} {', '.join(names)};"

    def step_ends(self, numbers: Sequence[int]) -> list[str]:
        """Print the end of a ``step``: after every ``block_steps`` of them a block ends."""
        ends = per_row(self.rows, list(map(self._added, numbers)))
        return CUDA.when(f"(step + 1) % {self.block_steps} == 0", ends) if ends else []

    def joined(self, numbers: Sequence[int]) -> list[str]:
        """Print how the sums of all blocks become one, in the states of these numbers."""
        whole = [f"s{n}[k] = sum{n}[k];" for n in numbers]
        return per_row(self.rows, [*map(self._added, numbers), *whole])

    def whole(self, number: int) -> str:
        """Return C text of the sum of all blocks of a state while elements still join."""
        before, *excess = (f"{name}[k]" for name in self.variables(number))
        before = f"({before} - {excess[0]})" if excess else before
        return f"({before} + s{number}[k])"

    def _added(self, n: int) -> str:
        if self._few:
            return f"sum{n}[k] += s{n}[k]; s{n}[k] = {{}};"
        return f"tw_add_block(sum{n}[k], excess{n}[k], s{n}[k]); s{n}[k] = {{}};"


def per_row(rows: int, lines: Sequence[str]) -> list[str]:
    """Return a loop that runs the lines for each row ``k`` that a thread has at once."""
    return CUDA.loop("k", rows, lines, unroll=True) if lines else []

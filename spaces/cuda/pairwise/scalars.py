"""The kernel before the passes: a number of each row or key, left in the workspace.

A warp adds up the terms of one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.scopes import ThreadScope
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.pairwise.view import Pairwise, Scalar
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes

WARPS = 8
"""Warps of a block."""
_LINE = 128


@dataclass(frozen=True)
class Scalars:
    """The numbers of all rows and keys of a program."""

    pairwise: Pairwise

    def parts(self, scalar: Scalar) -> tuple[Part, ...]:
        """Return the axes of the points that have a number each."""
        return (self.pairwise.key,) if scalar.of_key else self.pairwise.rows

    def count(self, scalar: Scalar) -> int:
        """Return the points of a product."""
        return prod(part.extent for part in self.parts(scalar))

    def _total(self, scalar: Scalar) -> int:
        return self.pairwise.batches * self.count(scalar)

    @property
    def bytes(self) -> int:
        """Bytes of the workspace for all numbers."""
        return sum(round_up(4 * self._total(scalar), _LINE) for scalar in self.pairwise.scalars)

    @property
    def blocks(self) -> int:
        """Blocks of the kernel."""
        return max(ceil_div(self._total(scalar), WARPS) for scalar in self.pairwise.scalars)

    def declared(self) -> Iterator[str]:
        """Yield the declarations of where the numbers are: ``scalar0``, ..."""
        place = 0
        for n, scalar in enumerate(self.pairwise.scalars):
            yield f"float *scalar{n} = (float *)(workspace + {place});"
            place += round_up(4 * self._total(scalar), _LINE)

    def body(self) -> list[str]:
        """Print the kernel."""
        lines = [f"const int number = (int)blockIdx.x * {WARPS} + (int)threadIdx.x / {WARP};"]
        for n, scalar in enumerate(self.pairwise.scalars):
            lines += CUDA.when(f"number < {self._total(scalar)}", self._number(n, scalar))
        return [*self.declared(), *lines]

    def _number(self, n: int, scalar: Scalar) -> list[str]:
        points = (*self.pairwise.batch, *self.parts(scalar))
        names = {part.name: f"p{i}" for i, part in enumerate(points)}
        access = Access(self.pairwise, {**names, scalar.term.name: "term"})
        body: list[str] = []
        known = magnitudes(self.pairwise.program)
        scope = ThreadScope("x", access.leaf, body, magnitudes=known)
        body.append(f"total += {scope.text(scalar.body)};")
        steps = f"{scalar.term.extent}", body
        return [
            *split("number", points, names, access.integer),
            "float total = 0.0f;",
            *CUDA.loop("term", *steps, first="lane", step=WARP),
            *(f"total += tw::shuffle_xor(total, {lanes});" for lanes in (16, 8, 4, 2, 1)),
            f"if (lane == 0) tw::store_global(scalar{n} + number, total);",
        ]

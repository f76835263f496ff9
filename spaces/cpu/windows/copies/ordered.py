"""A copy of the left operand in the order of its rows and of the depth.

It is made once a call, in the workspace, if terms of a row are far apart or run backwards in the
operand, as those of a transposed convolution's filter do: then a tile reads adjacent terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.copies.shared import SharedCopy
from tilewright.spaces.derivation.products.splitting import Part, number_of
from tilewright.spaces.derivation.products.view import PlacedProduct

LEAST_RUN = 64
"""The fewest adjacent terms that a tile reads in place: loops of fewer take longer to begin."""


@dataclass(frozen=True)
class OrderedCopy(SharedCopy):
    """A copy with all points of ``depth`` for each point of ``rows``, batch parts included; the
    element of the operand is at offset ``source``."""

    rows: tuple[Part, ...]
    depth: tuple[Part, ...]
    source: Index

    @property
    def length(self) -> int:
        """The number of elements of a row."""
        return prod(part.extent for part in self.depth)

    @property
    def lines(self) -> int:
        """The number of rows."""
        return prod(part.extent for part in self.rows)

    @cached_property
    def offset(self) -> Index:
        """The offset in the copy of the element that the factor reads."""
        return number_of((*self.rows, *self.depth))

    def copied(self, at: Sequence[Index]) -> list[str]:
        """Return the C text that copies one row."""
        (row,) = at
        first, rest = Index(constant=self.source.constant), row
        for part in reversed(self.rows):
            first += rest % part.extent * self.source.coefficient(part.name)
            rest = rest // part.extent
        extents = [part.extent for part in self.depth] or [1]

        def copied(turns: Sequence[Index]) -> list[str]:
            place, read = Index(), Index()
            for turn, part in zip(turns, self.depth, strict=False):
                place = place * part.extent + turn
                read += turn * self.source.coefficient(part.name)
            return [f"line[{place.text}] = row[{read.text}];"]

        return [
            f"const {C_TYPES[self.operand.dtype]} *row = from + ({first.text});",
            f"{C_TYPES[self.operand.dtype]} *line = to + {(row * self.length).text};",
            *repeat(*extents).emit(0, copied, prefix="d"),
        ]


def ordered_copy(product: PlacedProduct) -> OrderedCopy | None:
    """Return the copy of the left factor, if one is needed.

    It is if terms run backwards, if the output has steps and terms of a row are not adjacent, or
    if few are: fewer than :data:`LEAST_RUN` in a row. Return None otherwise, and where rows share
    elements, for the copy would be larger than the operand.
    """
    offset, depth = product.left.place.offset, product.depth
    steps = [offset.coefficient(part.name) for part in depth if part.extent > 1]
    adjacent = product.left.place.step(depth) in (0, 1)
    apart = not adjacent and (product.output.steps is not None or _run(product) < LEAST_RUN)
    if product.segments or not (apart or min(steps, default=0) < 0):
        return None
    every = (*product.batch, *product.rows)
    rows = tuple(part for part in every if offset.coefficient(part.name))
    copy = OrderedCopy(product.left.operand, rows, depth, offset)
    return copy if copy.bytes <= product.left.operand.bytes else None


def _run(product: PlacedProduct) -> int:
    """Return the number of terms of a row that are adjacent in the left operand."""
    run = 1
    for part in reversed(product.depth):
        if product.left.place.offset.coefficient(part.name) == run:
            run *= part.extent
    return run

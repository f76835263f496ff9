"""A copy of an operand with borders, in which every element that is read exists.

It is made once a call, before the product, in the workspace, so that loops that multiply or pack
need no test for borders. Its dimensions have the order of the operand's memory. The innermost
dimension that has a border is copied as one line, with all faster ones; a line lies in the border
as a whole if it is outside along a slower dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.spaces.algebra.index import Index, total
from tilewright.spaces.algebra.layout import row_major
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.copies.shared import SharedCopy
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import Factor


@dataclass(frozen=True)
class Dimension:
    """A dimension of a copy: ``before`` elements of border, ``extent`` of the operand, ``after`` of
    border."""

    before: int
    extent: int
    after: int

    @property
    def whole(self) -> int:
        """The extent with both borders."""
        return self.before + self.extent + self.after

    @property
    def bordered(self) -> bool:
        """True if there is a border."""
        return self.whole > self.extent


@dataclass(frozen=True)
class PaddedCopy(SharedCopy):
    """The padded copy; ``offset`` is where it has the element that the factor reads, and
    ``outside`` is the value of the border."""

    dimensions: tuple[Dimension, ...]
    offset: Index
    outside: float

    @cached_property
    def _line(self) -> int:
        """The rank of the dimension that lines run along."""
        return max(rank for rank, dimension in enumerate(self.dimensions) if dimension.bordered)

    @property
    def lines(self) -> int:
        """The number of lines."""
        return prod(dimension.whole for dimension in self.dimensions[: self._line])

    @property
    def _inner(self) -> int:
        return prod(d.whole for d in self.dimensions[self._line + 1 :])

    @property
    def length(self) -> int:
        """The number of elements of a line."""
        return self.dimensions[self._line].whole * self._inner

    @property
    def held(self) -> tuple[int, int]:
        """The first element of a line that the operand has, and the one after the last."""
        along = self.dimensions[self._line]
        return along.before * self._inner, (along.before + along.extent) * self._inner

    def source(self, line: Index) -> tuple[Index, int, list[str]]:
        """Locate the first element of a line that the operand :attr:`held`.

        Return its offset in the operand as an index of which a number is to be subtracted, that
        number, and the C tests that tell whether the operand has the line.
        """
        source, tests, rest = Index(), list[str](), line
        strides = row_major(*(d.extent for d in self.dimensions)).strides
        for rank in reversed(range(self._line)):
            dimension = self.dimensions[rank]
            place, rest = rest % dimension.whole, rest // dimension.whole
            source += place * strides[rank]
            if dimension.before:
                tests.append(f"{place} >= {dimension.before}")
            if dimension.after:
                tests.append(f"{place} < {dimension.before + dimension.extent}")
        skipped = sum(
            d.before * stride
            for d, stride in zip(self.dimensions[: self._line], strides, strict=False)
        )
        return source, skipped, tests

    def has_lines(self, lines: np.ndarray) -> np.ndarray:
        """Tell for each of some lines, given by their numbers, whether the operand has any of
        it."""
        found, rest = np.ones(lines.shape, bool), lines
        for dimension in reversed(self.dimensions[: self._line]):
            place, rest = rest % dimension.whole, rest // dimension.whole
            found &= (place >= dimension.before) & (place < dimension.before + dimension.extent)
        return found

    def copied(self, at: Sequence[Index]) -> list[str]:
        """Return the C text that copies one line with its borders."""
        (line,) = at
        length, (first, last) = self.length, self.held
        source, skipped, tests = self.source(line)
        copy = [
            *self._border(0, first),
            f"__builtin_memcpy(line + {first}, from + {source.text} - {skipped}, "
            f"{(last - first) * self.operand.element.bytes});",
            *self._border(last, length),
        ]
        lines = [f"{C_TYPES[self.operand.dtype]} *line = to + {(line * length).text};"]
        if not tests:
            return lines + copy
        empty = self._border(0, length)
        return [
            *lines,
            f"if ({' && '.join(tests)}) {{",
            *indented(copy),
            "} else {",
            *indented(empty),
            "}",
        ]

    def _border(self, first: int, last: int) -> list[str]:
        if first == last:
            return []
        return [f"for (long i = {first}; i < {last}; i++) line[i] = {self.value};"]

    @property
    def value(self) -> str:
        """The value of the border, as a C literal of the operand's element."""
        value = np.asarray(self.outside, self.operand.element.numpy)
        if self.operand.dtype == "bfloat16":
            return str(int(value.view(np.uint16)))
        return f"{float(value)!r}f"


def padded_copy(factor: Factor) -> PaddedCopy | None:
    """Return the copy that a factor is read from; None if all that is read of it exists."""
    return bordered_copy(factor) if factor.place.bounds else None


def bordered_copy(factor: Factor, further: Sequence[Part] = ()) -> PaddedCopy | None:
    """Return a copy that has all that is read of a factor, where the parts ``further`` have larger
    extents; None if the operand has all of it."""
    operand, dimensions = factor.operand, []
    values = {part.name: part.index for part in further}
    for rank in operand.order:
        extent, (least, most) = operand.shape[rank], factor.indices[rank].at(values).span
        assert least is not None
        assert most is not None
        dimensions.append(Dimension(max(0, -least), extent, max(0, most - extent + 1)))
    if not any(dimension.bordered for dimension in dimensions):
        return None
    strides = row_major(*(dimension.whole for dimension in dimensions)).strides
    places = (
        factor.indices[rank] + dimension.before
        for rank, dimension in zip(operand.order, dimensions, strict=True)
    )
    offset = total(zip(places, strides, strict=True))
    return PaddedCopy(operand, tuple(dimensions), offset, factor.place.outside or 0.0)

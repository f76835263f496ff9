"""An image with its borders, of which blocks hold windows in shared memory.

All elements from the innermost dimension with a border on are one line. Lines begin at whole
vectors, and so do their elements: borders are as wide as that takes. So a window of the image with
its borders, which exists nowhere as a whole, is copied in whole vectors, each of which is read, or
else is zero. The offset of an element is that of its row plus that of its term, without bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

import numpy as np

from tilewright.spaces.algebra.index import Index, index, total
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.layout import row_major
from tilewright.spaces.cuda.blocks.gathered import at, digits
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.derivation.products.splitting import Part

PAIR = 2
"""Elements in a register of a fragment."""
MOST_WASTE = 1.25
"""The most places for each term if terms are taken in pairs; else they are taken one by one."""


@dataclass(frozen=True)
class Runs:
    """Places of terms: ``count`` runs of ``length`` neighbours in the image.

    Each run has ``width`` places, of which ``before`` come before its first term and have none. If
    runs are ``paired``, two places from an even one on are always neighbours, at an even place of
    the image, too.
    """

    count: int
    length: int
    before: int
    width: int
    paired: bool

    @property
    def terms(self) -> int:
        """Places in all runs."""
        return self.count * self.width

    def term(self, place: Index) -> Index:
        """Return the term at a place, if it :attr:`has` one there."""
        if not self.before and self.width == self.length:
            return place
        run, along = place // self.width, place % self.width
        text = f"({(run * self.length + along).text} - {self.before})"
        return index(text, self.count * self.length)

    def has(self, place: Index) -> list[str]:
        """Return C tests that there is a term at a place, which may be beyond all."""
        along, end = place % self.width, self.before + self.length
        tests = [f"{place} < {self.terms}"]
        tests += [f"{along} >= {self.before}"] if self.before else []
        return tests + ([f"{along} < {end}"] if end < self.width else [])


@dataclass(frozen=True)
class Dimension:
    """One dimension: ``before`` elements of border, ``extent`` of the operand, ``after`` of border.

    The element that is read is at ``index`` of the operand.
    """

    index: Index
    before: int
    extent: int
    after: int

    @property
    def whole(self) -> int:
        """Elements with both borders."""
        return self.before + self.extent + self.after


@dataclass(frozen=True)
class Image:
    """The left factor of ``product``, extended by borders to all places that are read."""

    product: ImplicitProduct

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions, from the slowest to the fastest."""
        factor, found = self.product.view.left, []
        for rank in self.product.left.order:
            place, extent = factor.indices[rank], self.product.left.shape[rank]
            least, most = place.span
            before, after = max(0, -(least or 0)), max(0, (most or 0) - extent + 1)
            found.append(Dimension(place, before, extent, after))
        return tuple(found)

    # -- lines ---------------------------------------------------------------------------------

    @cached_property
    def _line(self) -> int:
        """The number of the dimension that lines run along, together with all faster ones."""
        return max((n for n, d in enumerate(self.dimensions) if d.whole > d.extent), default=0)

    @property
    def _inner(self) -> int:
        return prod(dimension.extent for dimension in self.dimensions[self._line + 1 :])

    @property
    def _held(self) -> int:
        """Elements of a line that the operand has."""
        return self.dimensions[self._line].extent * self._inner

    @property
    def vector(self) -> int:
        """Elements that are copied at a time."""
        return gcd(VECTOR_BYTES // self.product.left.element.bytes, self._held)

    @property
    def unit(self) -> int:
        """Elements of whose multiples lines, the operand's parts of them, and windows begin."""
        return max(self.vector, PAIR)

    @property
    def _before(self) -> int:
        """Elements of a line before those of the operand."""
        return int(round_up(self.dimensions[self._line].before * self._inner, self.unit))

    @property
    def length(self) -> int:
        """Elements of a line."""
        after = self.dimensions[self._line].after * self._inner
        return int(round_up(self._before + self._held + after, self.unit))

    # -- places --------------------------------------------------------------------------------

    @cached_property
    def offset(self) -> Index:
        """The place of an element that is read, in the image with its borders."""
        slow, line = self.dimensions[: self._line], self.dimensions[self._line]
        steps = [(line.index, self._inner)]
        steps += [(d.index + d.before, s) for d, s in zip(slow, self._strides(True), strict=True)]
        inner = self.dimensions[self._line + 1 :]
        strides = row_major(*(d.extent for d in inner)).strides if inner else ()
        steps += [(d.index, stride) for d, stride in zip(inner, strides, strict=True)]
        return total(steps, self._before)

    def _strides(self, bordered: bool) -> list[int]:
        """Return the elements from line to line along the slower dimensions, with borders or
        without."""
        slow = self.dimensions[: self._line]
        lines = row_major(*(d.whole if bordered else d.extent for d in slow)) if slow else None
        length = self.length if bordered else self._held
        return [stride * length for stride in lines.strides] if lines else []

    def of_row(self, number: Index) -> Index:
        """Return the part of the offset that belongs to a row, with its constant."""
        return at(self.offset, digits(self.product.view.rows, number)) + self.offset.constant

    def of_term(self, number: Index) -> Index:
        """Return the part of the offset that belongs to a term."""
        return at(self.offset, digits(self.product.view.depth, number))

    @cached_property
    def terms(self) -> np.ndarray:
        """The part of the offset of each term."""
        return self._points(self.product.view.depth, np.arange(self.product.terms))

    @cached_property
    def runs(self) -> Runs:
        """The places that terms have in fragments."""
        terms, rows = self.terms, self._coefficients(self.product.view.rows)
        starts = np.flatnonzero(np.diff(terms, prepend=terms[0] - 2) != 1)
        lengths = {int(length) for length in np.diff([*starts, len(terms)])}
        before = {int(at) % PAIR for at in terms[starts] + self.offset.constant}
        singly = Runs(1, len(terms), 0, len(terms), False)
        if len(lengths) > 1 or len(before) > 1 or any(step % PAIR for step in rows):
            return singly
        (length,), (left_out,) = lengths, before
        width = int(round_up(left_out + length, PAIR))
        found = Runs(len(starts), length, left_out, width, True)
        return found if found.terms <= MOST_WASTE * len(terms) else singly

    @property
    def ascends(self) -> bool:
        """True if later rows lie further on, and terms behind their row."""
        view = self.product.view
        depth, rows = self._coefficients(view.depth), self._coefficients(view.rows)
        reach = 0
        for part, step in zip(reversed(view.rows), reversed(rows), strict=True):
            if step < 0 or (part.extent > 1 and step < reach):
                return False
            reach += step * (part.extent - 1)
        return all(step >= 0 for step in depth)

    def _coefficients(self, parts: tuple[Part, ...]) -> list[int]:
        return [self.offset.coefficient(part.name) for part in parts]

    def _points(self, parts: tuple[Part, ...], numbers: np.ndarray) -> np.ndarray:
        """Return the parts of the offset of points of some axes, by their numbers."""
        found = np.zeros_like(numbers)
        for part, step in zip(reversed(parts), reversed(self._coefficients(parts)), strict=True):
            found, numbers = found + numbers % part.extent * step, numbers // part.extent
        return found

    # -- windows -------------------------------------------------------------------------------

    def window(self, rows: int) -> int:
        """Return the vectors of the largest window that ``rows`` neighbouring rows read.

        The first of these is a multiple of ``rows``.
        """
        first = np.arange(0, self.product.rows, rows)
        last = np.minimum(first + rows, self.product.rows) - 1
        begin, end = (
            self._points(self.product.view.rows, numbers) + self.offset.constant
            for numbers in (first, last)
        )
        end = end + int(self.terms.max()) + self.runs.paired
        begin = begin // self.unit * (self.unit // self.vector)
        return int((end // self.vector - begin).max()) + 1

    def source(self, vector: Index) -> tuple[Index, int, list[str]]:
        """Return where the operand has a vector of the image with its borders.

        The place is an index less a number of elements, in C; the tests say that the operand has
        the vector.
        """
        length, before = self.length // self.vector, self._before // self.vector
        line, along = self.dimensions[: self._line], vector
        rest = Index()
        if line:
            along, rest = vector % length, vector // length
        found, skipped = along * self.vector, self._before
        tests = [f"{along} >= {before}"] if before else []
        tests += [f"{along} < {before + self._held // self.vector}"]
        strides = self._strides(False)
        for rank in reversed(range(self._line)):
            dimension = line[rank]
            place = rest % dimension.whole if rank else rest
            rest = rest // dimension.whole
            found, skipped = (
                found + place * strides[rank],
                skipped + dimension.before * strides[rank],
            )
            if dimension.before:
                tests.append(f"{place} >= {dimension.before}")
            if dimension.after or not rank:
                tests.append(f"{place} < {dimension.before + dimension.extent}")
        return found, skipped, tests

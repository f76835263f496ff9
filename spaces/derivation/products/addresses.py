"""Find the address of a read: an offset by row plus an offset by depth, and bounds likewise.

All index arithmetic of an array collapses into one :class:`~spaces.algebra.index.Index`, the
distance in elements from the array's start, and one more for each dimension that an index may
leave. If no term depends on the depth and on
other parts at once, tables of offsets by row and by depth (or a constant step) say where everything
is: a convolution is read like a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.atoms import names_of
from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.products.roles import Roles
from tilewright.spaces.derivation.products.splitting import Indexing, Part
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Bound:
    """An element exists where ``0 <= index < extent``."""

    index: Index
    extent: int

    def __str__(self) -> str:
        return f"0 <= {self.index.formula} < {self.extent}"

    @property
    def holds(self) -> bool:
        """The index is seen to stay within the extent."""
        most = self.index.span[1]
        return not self.index.may_be_negative and most is not None and most < self.extent


@dataclass(frozen=True)
class Address:
    """The element that a read takes, in elements from the array's start.

    ``bounds`` are those that some index leaves, which has the value ``outside`` there.
    """

    name: str
    offset: Index
    bounds: tuple[Bound, ...]
    outside: float | None

    def step(self, parts: Sequence[Part]) -> int | None:
        """Return the elements from one point of ``parts`` to the next, the last part the fastest; 0
        if they make no difference, None if it is not the same everywhere (they are gathered)."""
        longer = [part for part in parts if part.extent > 1]
        names = [part.name for part in longer]
        if not self.offset.without(names).names.isdisjoint(names):
            return None
        step, expected = 0, None
        for part in reversed(longer):
            coefficient = self.offset.coefficient(part.name)
            if expected is not None and coefficient != expected:
                return None
            step = coefficient if expected is None else step
            expected = coefficient * part.extent
        return step


def address_of(program: Program, indexing: Indexing, read: Read) -> Address:
    """Return the place of a read of an operand, or of a stage, dense and in the order of its
    axes."""
    shape, strides = _memory(program, read.name)
    bounds = map(Bound, map(indexing.index, read.indices), shape)
    left = tuple(b for b in bounds if read.outside is not None and not b.holds)
    return Address(read.name, indexing.place(read.indices, strides), left, read.outside)


def addresses_of(program: Program, found: Roles, factor: Expression) -> tuple[Address, ...]:
    """Return the places of all reads of a factor of a sum of products, from left to right."""
    return tuple(address_of(program, found.indexing, read) for read in factor.value_reads)


def why_not_separable(place: Address, found: Roles) -> str | None:
    """Return the term that depends on the depth and on other parts at once, in words; None if all
    terms keep them apart."""
    depth = frozenset(found.role("depth"))
    for index in (place.offset, *(bound.index for bound in place.bounds)):
        for atom, _ in index.terms:
            axes = names_of(atom)
            if not axes.isdisjoint(depth) and not axes <= depth:
                mixed = " and ".join(sorted(axes))
                return f"{place.name} is read at {atom.formula}, which mixes {mixed}"
    return None


def _memory(program: Program, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in elements."""
    if name in program.operand:
        operand = program.operand[name]
        return operand.shape, operand.strides
    shape = program.shape(program.stage[name].axes)
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return shape, tuple(reversed(strides[: len(shape)]))

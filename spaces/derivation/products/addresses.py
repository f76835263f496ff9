"""Find the address of a read: an offset by row plus an offset by depth, and bounds likewise.

All index arithmetic of an array collapses into one
:class:`~spaces.derivation.products.forms.Form`, the distance in elements from the array's start,
and one more for each dimension that an index may leave. If no term depends on the depth and on
other parts at once, tables of offsets by row and by depth (or a constant step) say where everything
is: a convolution is read like a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.derivation.products.forms import Form, axes_of, span
from tilewright.spaces.derivation.products.roles import Roles
from tilewright.spaces.derivation.products.splitting import Indexing, Part
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Bound:
    """An element exists where ``0 <= index < extent``."""

    index: Form
    extent: int

    def __str__(self) -> str:
        return f"0 <= {self.index} < {self.extent}"


@dataclass(frozen=True)
class Address:
    """The element that a read takes, in elements from the array's start.

    ``bounds`` are those that some index leaves, which has the value ``outside`` there.
    """

    name: str
    offset: Form
    bounds: tuple[Bound, ...]
    outside: float | None

    def step(self, parts: Sequence[Part]) -> int | None:
        """Return the elements from one point of ``parts`` to the next, the last part the fastest; 0
        if they make no difference, None if it is not the same everywhere (they are gathered)."""
        names = [part.name for part in parts if part.extent > 1]
        terms = dict(self.offset.part(names).terms)
        if not set(terms) <= set(names):
            return None
        step, expected = 0, None
        for part in reversed([part for part in parts if part.extent > 1]):
            coefficient = terms.get(part.name, 0)
            if expected is not None and coefficient != expected:
                return None
            step = coefficient if expected is None else step
            expected = coefficient * part.extent
        return step


def address_of(program: Program, indexing: Indexing, read: Read) -> Address:
    """Return the place of a read of an operand, or of a stage, dense and in the order of its
    axes."""
    forms = [indexing.form(index) for index in read.indices]
    shape, strides = _memory(program, read.name)
    offset = Form()
    for form, stride in zip(forms, strides, strict=True):
        offset = offset + form * stride
    bounds = tuple(
        Bound(form, extent)
        for form, extent in zip(forms, shape, strict=True)
        if read.outside is not None and not _within(form, extent, indexing)
    )
    return Address(read.name, offset, bounds, read.outside)


def addresses_of(program: Program, found: Roles, factor: Expression) -> tuple[Address, ...]:
    """Return the places of all reads of a factor of a sum of products, from left to right."""
    return tuple(address_of(program, found.indexing, read) for read in factor.value_reads)


def why_not_separable(place: Address, found: Roles) -> str | None:
    """Return the term that depends on the depth and on other parts at once, in words; None if all
    terms keep them apart."""
    depth = frozenset(found.role("depth"))
    for form in (place.offset, *(bound.index for bound in place.bounds)):
        for atom, _ in form.terms:
            axes = frozenset(axes_of(atom))
            if not axes.isdisjoint(depth) and not axes <= depth:
                return f"{place.name} is read at {atom}, which mixes {' and '.join(sorted(axes))}"
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


def _within(form: Form, extent: int, indexing: Indexing) -> bool:
    known = span(form, indexing.limits)
    return known is not None and known[0] >= 0 and known[1] < extent

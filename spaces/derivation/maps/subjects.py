"""The parts of a map that depend on its axes: places of arrays, and values of axes alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, total
from tilewright.spaces.derivation.maps.nest import Loop, Nest
from tilewright.spaces.derivation.products.addresses import Address, address_of
from tilewright.spaces.derivation.products.splitting import Indexing, whole_axes
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import affine
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
)


@dataclass(frozen=True)
class Subjects:
    """The reads whose values count, and the largest parts of expressions, and the comparisons,
    that consist of axes and entries of index tables.

    ``values`` may read what is ``reduced``, at their own point: its axes are loops, too.
    """

    program: Program
    stages: Sequence[Stage]
    values: Sequence[Expression]
    reduced: Stage | None = None

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """All reads from left to right, equal ones once."""
        return tuple(x for x in self._found if isinstance(x, Read) and not self._is_whole(x))

    @cached_property
    def wholes(self) -> tuple[Expression, ...]:
        """The others."""
        return tuple(x for x in self._found if x not in self.reads)

    @property
    def nest(self) -> Nest:
        """All subjects as indices: values by themselves, outputs by their names, and the bounds of
        reads by the read and a number.
        """
        axes = (*self.stages[0].axes, *(self.reduced.over if self.reduced else ()))
        loops = tuple(Loop(axis, self.program.extent[axis]) for axis in axes)
        indices: dict[Hashable, Index] = {whole: self._whole(whole) for whole in self.wholes}
        for read, found in self.places.items():
            indices[read] = found.offset
            indices |= {(read, i): bound.index for i, bound in enumerate(found.bounds)}
        for stage, output in zip(self.stages, self.program.outputs, strict=True):
            at = map(AxisValue, stage.axes)
            indices[output.name] = self._indexing.place(at, output.strides)
        return Nest(loops, indices)

    @cached_property
    def places(self) -> dict[Read, Address]:
        """The places where the reads find their elements."""
        return {read: self._place(read) for read in self.reads}

    @cached_property
    def _found(self) -> tuple[Expression, ...]:
        return tuple(dict.fromkeys(x for value in self.values for x in self._within(value)))

    def _within(self, node: Expression) -> Iterator[Expression]:
        match node:
            case Number() | Negation(Number()):
                return
            case Comparison(_, left, right) if self._is_whole(left) and self._is_whole(right):
                yield node
            case _ if self._is_whole(node):
                yield node
            case Read(name) if self.reduced and name == self.reduced.name:
                return
            case Read():
                yield node
            case Binary("//" | "%" as operator):
                raise InputError(f"{node} has {operator} of what is no index; a map computes none")
            case _:
                for child in node.children:
                    yield from self._within(child)

    def _is_whole(self, node: Expression) -> bool:
        """Tell whether a node is an index: made of axes, integers and tables."""
        if not self._has_whole_leaves(node):
            return False
        try:
            affine(node)
        except InputError:
            return False
        return True

    def _has_whole_leaves(self, node: Expression) -> bool:
        match node:
            case Read(name, _, outside):
                return name in self._tables and outside is None
            case AxisValue() | Number():
                return True
            case Negation() | Binary():
                return all(map(self._has_whole_leaves, node.children))
        return False

    def _whole(self, node: Expression) -> Index:
        if isinstance(node, Comparison):
            sides = self._indexing.index(node.left), self._indexing.index(node.right)
            return total(zip(sides, (1, -1), strict=True))
        return self._indexing.index(node)

    def _place(self, read: Read) -> Address:
        if read.name not in self.program.operand:
            raise InputError(f"the map {read.name} is too long to be computed where it is read")
        return address_of(self.program, self._indexing, read)

    @cached_property
    def _tables(self) -> dict[str, int]:
        return {o.name: o.drawn.below for o in self.program.operands if o.drawn}

    @cached_property
    def _indexing(self) -> Indexing:
        return Indexing(whole_axes(self.program), self._tables)

"""Reads of a kernel over pairs of rows and keys: elements of arrays for a row, a key, or a point of
a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.text import in_c
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.reach import Reach, place_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.scopes import Integer, Leaf
from tilewright.spaces.language.tree import AxisValue, Expression, Read


def key_number(chained: Chained) -> AxisValue | None:
    """Return the axis whose value is the number of a key; None if keys are part of an axis."""
    return _number(chained, chained.key)


def row_number(chained: Chained) -> AxisValue | None:
    """Return the axis whose value is the number of a row; None if rows are of several axes."""
    rows = [part for part in chained.rows if part.extent > 1]
    return _number(chained, rows[0]) if len(rows) == 1 else None


def _number(chained: Chained, part: Part) -> AxisValue | None:
    axis = AxisValue(part.axis)
    return axis if chained.indexing.index(axis) == part.index else None


V = TypeVar("V", bound=RowsAndKeys, covariant=True)


@dataclass(frozen=True)
class Access(Generic[V]):
    """The reads of a kernel of ``view``; ``names`` has the C variable of each known axis."""

    view: V
    names: Mapping[str, str]

    def knowing(self, names: Mapping[str, str]) -> Access[V]:
        """Return the same access with further variables."""
        return replace(self, names={**self.names, **names})

    @cached_property
    def buffers(self) -> Mapping[str, str]:
        """The C variable of each array."""
        program = self.view.program
        arrays = (*program.operands, *program.outputs)
        return {array.name: f"buffer{i}" for i, array in enumerate(arrays)}

    @cached_property
    def integer(self) -> str:
        """The C type of whole numbers: 64 bits where an array or a bound needs it."""
        view = self.view
        found = [place.offset for place in view.places.values()]
        found += [*view.bounds, *view.offsets]
        return "int" if Reach(view.program).are_narrow(found) else "i64"

    def text(self, index: Index) -> str:
        """Return C text of an index of the known axes."""
        return in_c(index, self.names, self._loaded)

    def _loaded(self, entry: Entry) -> Index:
        place = place_of(self.view.program, entry).loaded(self._loaded)
        found = f"tw_entry({self.buffers[entry.table]} + {place}, {entry.below})"
        return variable(found if self.integer == "int" else f"(i64){found}", entry.below)

    def leaf(self, node: Expression) -> str | None:
        """Return C text of a leaf of known axes: an axis' value or an element of an array.

        It is a float; of a table it is an integer, if the leaf asks for that. None for all other
        expressions.
        """
        if isinstance(node, Integer):
            return self._integer(node.node)
        if isinstance(node, AxisValue):
            index = self.view.indexing.index(node)
            return f"(float){self.text(index)}" if self._knows(index) else None
        if isinstance(node, Read) and node in self.view.places:
            return self.element(node) if self._knows(self.view.places[node].offset) else None
        return None

    def _integer(self, node: Expression) -> str | None:
        if not isinstance(node, Read) or self.leaf(node) is None:
            return None
        is_integer = self.view.program.operand[node.name].element.is_integer
        return f"(i64)tw::load_global({self.address(node)})" if is_integer else None

    def element(self, read: Read) -> str:
        """Return C text of the element that a read takes, as a float."""
        entry = f"tw::load_global({self.address(read)})"
        is_integer = self.view.program.operand[read.name].element.is_integer
        return f"(float){entry}" if is_integer else f"tw::to_float({entry})"

    def address(self, read: Read) -> str:
        """Return C text of the address of the element that a read takes."""
        return f"{self.buffers[read.name]} + {self.text(self.view.places[read].offset)}"

    def parameters(self) -> str:
        """Return the C parameters of all arrays."""
        program = self.view.program
        read = [f"const {C_TYPES[operand.dtype]}" for operand in program.operands]
        written = [C_TYPES[output.dtype] for output in program.outputs]
        pairs = zip([*read, *written], self.buffers.values(), strict=True)
        return ", ".join(f"{kind} *__restrict__ {name}" for kind, name in pairs)

    def _knows(self, index: Index) -> bool:
        return all(v.extent == 1 or v.text in self.names for v in index.variables)


def leaves(row: Access[Chained]) -> tuple[Leaf, Leaf]:
    """Return the leaves of a known row: those that differ by row, and those that differ by key.

    The latter are for the key ``key``, whose number is ``at`` after the lane's ``first``.
    """
    chained, known = row.view, row.knowing({row.view.key.name: "key"})

    def row_leaf(node: Expression) -> str | None:
        return None if chained.reads_key(node) else row.leaf(node)

    def key_leaf(node: Expression) -> str | None:
        if node == key_number(chained):
            return "(float)first + (float)at"  # one conversion a tile, none for each key
        return known.leaf(node) if chained.key.name in chained.indexing.reads(node) else None

    return row_leaf, key_leaf

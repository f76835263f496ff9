"""The values of a map, as C expressions on vectors along the columns of a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.algebra.atoms import Atom, Entry, Quotient
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cpu.vectors.vector_code import VectorCode
from tilewright.spaces.cpu.vectors.wide import Wide
from tilewright.spaces.derivation.maps.comparisons import simplest
from tilewright.spaces.derivation.maps.plane import ANYWHERE, Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.products.reach import Reach, place_of
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import Comparison, Expression, Read, Select


@dataclass(frozen=True)
class VectorValues:
    """Writes expressions as vectors of the columns from ``column`` on, a C expression.

    Other loops' indices are in C variables of the loops' names. ``tables`` has the pointer and the
    type of each index table, ``loaded`` the vector of each access that was read, and ``left`` the
    number of lanes in use.
    """

    plane: Plane
    column: str
    left: str
    tables: Mapping[str, tuple[str, str]]
    loaded: Mapping[Access, str]

    def of(self, node: Expression) -> str:
        """Return the C text of an expression, as a vector of floats."""
        return node.fold(VectorCode(explicit=True), self._known).text

    def _known(self, node: Expression) -> Written | None:
        view = self.plane.view
        if node in view.wholes:
            return Written(self._number(view.wholes[node]))
        if large := self._wide.value(node):
            return Written(large)
        match node:
            case Select(Comparison() as condition, then, otherwise):
                return Written(self._select(condition, self.of(then), self.of(otherwise)))
            case Read():
                return Written(self.loaded[view.reads[node]])
        return None

    @property
    def _wide(self) -> Wide:
        """The writer of whole numbers that are no index."""
        return Wide(magnitudes(self.plane.view.program), self._whole, self.of)

    def _whole(self, node: Expression) -> str | None:
        index = self.plane.view.wholes.get(node)
        if index is None:
            return None
        if isinstance(node, Comparison):
            return self._wide_mask(*simplest(index, node.operator))
        return (
            self._in_lanes(index, "_wide")
            if self.varies(index)
            else f"tw_wide({self.scalar(index)})"
        )

    def _wide_mask(self, index: Index, operator: str) -> str:
        """Return a comparison of an index with zero as a mask of 64 bits."""
        if self.varies(index):
            return f"({self._in_lanes(index, '_wide')} {operator} 0)"
        return f"tw_wide(-(long)({self.scalar(index)} {operator} 0))"

    def _number(self, index: Index) -> str:
        if self.varies(index):
            return f"tw_numbers{self._width(index)}({self.lanes(index)})"
        return f"tw_set((float)({self.scalar(index)}))"

    def _width(self, index: Index) -> str:
        """Return the suffix of the functions that take an index's lanes: that for 64 bits, or
        none."""
        return "" if is_narrow(self.plane, index) else "_wide"

    def _select(self, condition: Comparison, then: str, otherwise: str) -> str:
        operator = condition.operator
        if condition not in self.plane.view.wholes:
            if large := self._wide.mask(condition):
                return f"tw_choose({large}, {then}, {otherwise})"
            mask = f"{self.of(condition.left)} {operator} {self.of(condition.right)}"
            return f"tw_choose({mask}, {then}, {otherwise})"
        index = self.plane.view.wholes[condition]
        index, operator = simplest(index, operator)
        if self.varies(index):
            mask = f"{self.lanes(index)} {operator} 0"
            if not is_narrow(self.plane, index):
                mask = f"tw_narrowed({mask})"
            return f"tw_choose({mask}, {then}, {otherwise})"
        return f"({self.scalar(index)} {operator} 0 ? {then} : {otherwise})"

    def varies(self, index: Index) -> bool:
        """Tell whether columns differ in an index."""
        return self.plane.columns.name in index.names

    def scalar(self, index: Index) -> str:
        """Return an index that is the same for all columns, or its value at the plane's first
        column."""
        return str(index.loaded(self._loaded))

    def offsets(self, index: Index) -> tuple[str, str]:
        """Return the suffix of the function that takes an access' offsets, and these offsets in
        lanes."""
        return self._width(index), self.lanes(index)

    def lanes(self, index: Index) -> str:
        """Return an index that differs between columns, in lanes of as many bits as it takes."""
        return self._in_lanes(index, "" if is_narrow(self.plane, index) else "_wide")

    def _in_lanes(self, index: Index, width: str) -> str:
        """Return the text of an index in all lanes, by helpers whose names end in ``width``."""
        differing = index.part([self.plane.columns.name])
        same = index - differing
        text = differing.replaced(lambda atom: variable(self._lane_atom(atom, width)))
        if same == Index():
            return str(text)
        number = self.scalar(same)
        return f"({text} + {number})" if width else f"({text} + (int)({number}))"

    def _loaded(self, entry: Entry) -> Index:
        pointer, _ = self.tables[entry.table]
        place = self.scalar(place_of(self.plane.view.program, entry))
        return variable(f"tw_entry({pointer}[{place}], {entry.below})", entry.below)

    def _lane_atom(self, atom: Atom, width: str) -> str:
        def lanes(index: Index) -> str:
            return self._in_lanes(index, width) if width else self.lanes(index)

        match atom:
            case Quotient(dividend, divisor):
                return f"tw_quotients{width}({lanes(dividend)}, {divisor})"
            case Entry(table, below=below):
                pointer, dtype = self.tables[table]
                offsets = lanes(place_of(self.plane.view.program, atom))
                found = f"tw_table{width}_{dtype}({pointer}, {offsets}, {self.left})"
                return f"tw_entries{width}({found}, {below})"
        return f"tw_ramp{width}({self.column})"


def is_narrow(plane: Plane, index: Index) -> bool:
    """Tell whether 32 bits hold an index in all lanes."""
    return Reach(plane.view.program).are_narrow([index])


@lru_cache(maxsize=64)
def has_wide_forms(plane: Plane) -> bool:
    """Tell whether some index in which columns differ takes 64 bits."""
    view, columns = plane.view, plane.columns.name
    differing = [a.offset.part([columns]) for a in view.loaded if plane.kind(a) == ANYWHERE]
    compared = [f for n, f in view.wholes.items() if isinstance(n, Comparison)]
    values = [f for f in view.wholes.values() if columns in f.names]
    found = [*differing, *values, *(index - 1 for index in compared)]
    return not all(is_narrow(plane, index) for index in found)

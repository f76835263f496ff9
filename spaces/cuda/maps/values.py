"""The expressions of a map as CUDA C++ on one element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cuda.scalar_code import ScalarCode, Value, multiply_add
from tilewright.spaces.cuda.wide import Wide
from tilewright.spaces.derivation.maps.comparisons import (
    simplest,
)
from tilewright.spaces.derivation.maps.view import Access, MapView
from tilewright.spaces.derivation.products.reach import Reach, place_of
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Comparison, Expression, Read


@dataclass(frozen=True)
class ScalarValues:
    """The code of expressions at the point that C variables named like the loops give.

    ``tables`` has the variables that point to index tables, and ``loaded`` the expressions, of type
    float, of what was read. Whole numbers are of the C type ``integer``; ``names`` gives other
    indices in the place of some loops.
    """

    view: MapView
    tables: Mapping[str, str]
    loaded: Mapping[Access, str]
    integer: str
    names: Mapping[str, Index] = field(default_factory=dict)

    def of(self, node: Expression) -> str:
        """Return C text of the expression, a float."""
        return node.fold(ScalarCode(explicit=True), self._known).text

    def _known(self, node: Expression) -> Value | None:
        if isinstance(node, Comparison):
            return Value(self._holds(node))
        if node in self.view.wholes:
            return Value(f"(float)({self.whole(self.view.wholes[node])})")
        if isinstance(node, Read):
            return Value(self.loaded[self.view.reads[node]])
        if large := self._wide.value(node):
            return large
        fused = multiply_add(node, lambda read: read not in self.view.wholes)
        return fused and Value(f"tw::fused({', '.join(map(self.of, fused))})")

    def _holds(self, condition: Comparison) -> str:
        operator = condition.operator
        if condition not in self.view.wholes:
            if large := self._wide.condition(condition):
                return large.text
            return f"{self.of(condition.left)} {operator} {self.of(condition.right)}"
        index, operator = simplest(self.view.wholes[condition], operator)
        return f"{self.whole(index)} {operator} 0"

    @property
    def _wide(self) -> Wide:
        """The code of large whole numbers that are no affine index."""
        return Wide(magnitudes(self.view.program), self._leaf, lambda node: Value(self.of(node)))

    def _leaf(self, node: Expression) -> str | None:
        index = self.view.wholes.get(node)
        if index is None:
            return None
        return self._holds(node) if isinstance(node, Comparison) else f"(i64)({self.whole(index)})"

    def whole(self, index: Index) -> str:
        """Return C text of a whole number."""
        return str(index.at(self.names).loaded(self._loaded))

    def _loaded(self, entry: Entry) -> Index:
        place = f"{self.tables[entry.table]} + {self.whole(place_of(self.view.program, entry))}"
        return variable(f"({self.integer})tw_entry({place}, {entry.below})", entry.below)


def are_narrow(view: MapView) -> bool:
    """Return true if 32 bits hold the places of all arrays, and all whole numbers that are
    values."""
    found = [access.offset for access in (*view.loaded, *view.outputs)]
    for node, index in view.wholes.items():
        found.append(index - 1 if isinstance(node, Comparison) else index)
    return Reach(view.program).are_narrow(found)

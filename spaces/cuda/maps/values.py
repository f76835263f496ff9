"""What a map computes, as CUDA C++ on one element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaces.cuda.scalar_code import ScalarCode, Value, multiply_add
from spaces.derivation.maps.text import entry_offset, form_text, may_be_negative, simplest
from spaces.derivation.maps.view import Access, MapView
from spaces.derivation.products.forms import Atom, Entry, Form, Quotient
from spaces.language.tree import Comparison, Expression, Read


@dataclass(frozen=True)
class ScalarValues:
    """Writes expressions at the point that C variables named like the loops say.

    ``tables`` has the variables that point to index tables, and ``loaded`` the expressions, of
    type float, for what was read. Whole numbers are of the C type ``integer``.
    """

    view: MapView
    tables: Mapping[str, str]
    loaded: Mapping[Access, str]
    integer: str

    def of(self, node: Expression) -> str:
        """The expression, a float."""
        return node.fold(ScalarCode(explicit=True), self._known).text

    def _known(self, node: Expression) -> Value | None:
        if isinstance(node, Comparison):
            return Value(self._holds(node))
        if node in self.view.wholes:
            return Value(f"(float)({self.whole(self.view.wholes[node])})")
        if isinstance(node, Read):
            return Value(self.loaded[self.view.reads[node]])
        fused = multiply_add(node, lambda read: read not in self.view.wholes)
        return fused and Value(f"tw::fused({', '.join(map(self.of, fused))})")

    def _holds(self, condition: Comparison) -> str:
        operator = condition.operator
        if condition not in self.view.wholes:
            return f"{self.of(condition.left)} {operator} {self.of(condition.right)}"
        form, operator = simplest(self.view.wholes[condition], operator, self.view.limits)
        return f"{self.whole(form)} {operator} 0"

    def whole(self, form: Form) -> str:
        """A whole number."""
        return form_text(form, self._atom)

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Quotient(dividend, divisor):
                if may_be_negative(self.view, atom):
                    return f"tw_quotient({self.whole(dividend)}, {divisor})"
                return f"({self.whole(dividend)} / {divisor})"
            case Entry(table):
                place = f"{self.tables[table]} + {self.whole(entry_offset(self.view, atom))}"
                return f"({self.integer})tw_entry({place}, {self.view.limits[table]})"
        return f"({self.integer}){atom}"

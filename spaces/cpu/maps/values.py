"""What a map computes, as C expressions on vectors along the columns of a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaces.cpu.vectors.vector_code import VectorCode
from spaces.derivation.maps.plane import Plane
from spaces.derivation.maps.text import entry_offset, form_text, may_be_negative, simplest
from spaces.derivation.maps.view import Access
from spaces.derivation.products.forms import Atom, Entry, Form, Quotient
from spaces.language.text import Written
from spaces.language.tree import Comparison, Expression, Read, Select


@dataclass(frozen=True)
class VectorValues:
    """Writes expressions as vectors of the columns from ``column`` on, a C expression.

    C variables named like the loops hold what the others are at; ``tables`` has the variables that
    point to index tables, with their dtypes, ``loaded`` those that hold what was read; ``left`` is
    the number of lanes in use.
    """

    plane: Plane
    column: str
    left: str
    tables: Mapping[str, tuple[str, str]]
    loaded: Mapping[Access, str]

    def of(self, node: Expression) -> str:
        """The expression, as a vector of floats."""
        return node.fold(VectorCode(explicit=True), self._known).text

    def _known(self, node: Expression) -> Written | None:
        view = self.plane.view
        if node in view.wholes:
            return Written(self._number(view.wholes[node]))
        match node:
            case Select(Comparison() as condition, then, otherwise):
                return Written(self._select(condition, self.of(then), self.of(otherwise)))
            case Read():
                return Written(self.loaded[view.reads[node]])
        return None

    def _number(self, form: Form) -> str:
        if self.varies(form):
            return f"tw_numbers({self.lanes(form)})"
        return f"tw_set((float)({self.scalar(form)}))"

    def _select(self, condition: Comparison, then: str, otherwise: str) -> str:
        operator = condition.operator
        if condition not in self.plane.view.wholes:
            mask = f"{self.of(condition.left)} {operator} {self.of(condition.right)}"
            return f"tw_choose({mask}, {then}, {otherwise})"
        form = self.plane.view.wholes[condition]
        form, operator = simplest(form, operator, self.plane.view.limits)
        if self.varies(form):
            return f"tw_choose({self.lanes(form)} {operator} 0, {then}, {otherwise})"
        return f"({self.scalar(form)} {operator} 0 ? {then} : {otherwise})"

    def varies(self, form: Form) -> bool:
        """Whether columns differ in a form."""
        return self.plane.columns.name in form.axes

    def scalar(self, form: Form) -> str:
        """A whole number that is the same for all columns, or what it is at the plane's first."""
        return form_text(form, self._scalar_atom)

    def lanes(self, form: Form) -> str:
        """The whole numbers of a form in which columns differ."""
        differing = form.part([self.plane.columns.name])
        same = form - differing
        text = form_text(differing, self._lane_atom)
        return text if same == Form() else f"({text} + (int)({self.scalar(same)}))"

    def _scalar_atom(self, atom: Atom) -> str:
        view = self.plane.view
        match atom:
            case Quotient(dividend, divisor):
                if may_be_negative(view, atom):
                    return f"tw_quotient({self.scalar(dividend)}, {divisor})"
                return f"({self.scalar(dividend)} / {divisor})"
            case Entry(table):
                pointer, _ = self.tables[table]
                offset = self.scalar(entry_offset(view, atom))
                return f"tw_entry({pointer}[{offset}], {view.limits[table]})"
        return atom

    def _lane_atom(self, atom: Atom) -> str:
        view = self.plane.view
        match atom:
            case Quotient(dividend, divisor):
                return f"tw_quotients({self.lanes(dividend)}, {divisor})"
            case Entry(table):
                pointer, dtype = self.tables[table]
                offsets = self.lanes(entry_offset(view, atom))
                found = f"tw_table_{dtype}({pointer}, {offsets}, {self.left})"
                return f"tw_entries({found}, {view.limits[table]})"
        return f"tw_ramp({self.column})"

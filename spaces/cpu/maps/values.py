"""What a map computes, as C expressions on vectors along the columns of a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.cpu.vectors.vector_code import VectorCode
from tilewright.spaces.cpu.vectors.wide import Wide
from tilewright.spaces.derivation.maps.plane import ANYWHERE, Plane
from tilewright.spaces.derivation.maps.text import (
    entry_offset,
    form_text,
    may_be_negative,
    simplest,
)
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.products.forms import Atom, Entry, Form, Quotient
from tilewright.spaces.derivation.products.reach import Reach
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import Comparison, Expression, Read, Select


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
        """What consists of whole numbers, and is no form."""
        return Wide(magnitudes(self.plane.view.program), self._whole, self.of)

    def _whole(self, node: Expression) -> str | None:
        form = self.plane.view.wholes.get(node)
        if form is None:
            return None
        return self._wide_lanes(form) if self.varies(form) else f"tw_wide({self.scalar(form)})"

    def _number(self, form: Form) -> str:
        if self.varies(form):
            return f"tw_numbers{self._width(form)}({self.lanes(form)})"
        return f"tw_set((float)({self.scalar(form)}))"

    def _width(self, form: Form) -> str:
        """What the names of functions of its lanes end with."""
        return "" if is_narrow(self.plane, form) else "_wide"

    def _select(self, condition: Comparison, then: str, otherwise: str) -> str:
        operator = condition.operator
        if condition not in self.plane.view.wholes:
            if large := self._wide.mask(condition):
                return f"tw_choose({large}, {then}, {otherwise})"
            mask = f"{self.of(condition.left)} {operator} {self.of(condition.right)}"
            return f"tw_choose({mask}, {then}, {otherwise})"
        form = self.plane.view.wholes[condition]
        form, operator = simplest(form, operator, self.plane.view.limits)
        if self.varies(form):
            mask = f"{self.lanes(form)} {operator} 0"
            if not is_narrow(self.plane, form):
                mask = f"tw_narrowed({mask})"
            return f"tw_choose({mask}, {then}, {otherwise})"
        return f"({self.scalar(form)} {operator} 0 ? {then} : {otherwise})"

    def varies(self, form: Form) -> bool:
        """Whether columns differ in a form."""
        return self.plane.columns.name in form.axes

    def scalar(self, form: Form) -> str:
        """A whole number that is the same for all columns, or what it is at the plane's first."""
        return form_text(form, self._scalar_atom)

    def offsets(self, form: Form) -> tuple[str, str]:
        """Those of places in which columns differ, and what the name of the function that takes
        them ends with."""
        return self._width(form), self.lanes(form)

    def lanes(self, form: Form) -> str:
        """The whole numbers of a form in which columns differ, in as many bits as it takes."""
        if not is_narrow(self.plane, form):
            return self._wide_lanes(form)
        differing = form.part([self.plane.columns.name])
        same = form - differing
        text = form_text(differing, self._lane_atom)
        return text if same == Form() else f"({text} + (int)({self.scalar(same)}))"

    def _wide_lanes(self, form: Form) -> str:
        differing = form.part([self.plane.columns.name])
        same = form - differing
        text = form_text(differing, self._wide_atom)
        return text if same == Form() else f"({text} + {self.scalar(same)})"

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

    def _wide_atom(self, atom: Atom) -> str:
        view = self.plane.view
        match atom:
            case Quotient(dividend, divisor):
                return f"tw_quotients_wide({self._wide_lanes(dividend)}, {divisor})"
            case Entry(table):
                pointer, dtype = self.tables[table]
                offsets = self._wide_lanes(entry_offset(view, atom))
                found = f"tw_table_wide_{dtype}({pointer}, {offsets}, {self.left})"
                return f"tw_entries_wide({found}, {view.limits[table]})"
        return f"tw_ramp_wide({self.column})"


def is_narrow(plane: Plane, form: Form) -> bool:
    """Whether 32 bits hold a form in all lanes."""
    return Reach(plane.view.program, plane.view.limits).are_narrow([form])


@lru_cache(maxsize=64)
def has_wide_forms(plane: Plane) -> bool:
    """Whether some form in which columns differ takes 64 bits."""
    view, columns = plane.view, plane.columns.name
    differing = [a.offset.part([columns]) for a in view.loaded if plane.kind(a) == ANYWHERE]
    compared = [f for n, f in view.wholes.items() if isinstance(n, Comparison)]
    values = [f for f in view.wholes.values() if columns in f.axes]
    found = [*differing, *values, *(form - Form((), 1) for form in compared)]
    return not all(is_narrow(plane, form) for form in found)

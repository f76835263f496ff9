"""Bound the integers that occur while a form is computed: kernels use 32 bits if they fit, else 64.

This is the one place that decides. Dividends count as well as quotients, and so does every partial
sum, in whatever order code adds up its terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.spaces.derivation.products.forms import Atom, Entry, Form, Limits, Quotient, span
from tilewright.spaces.language.program import Program

NARROW = 2**31 - 2**16
"""The largest offset of 32 bits, with room for tiles that stick out of their arrays."""
UNKNOWN = 2**63


def offset_of(program: Program, entry: Entry) -> Form:
    """Find the place of an entry of an index table, in elements from its start."""
    offset = Form()
    for index, stride in zip(entry.indices, program.operand[entry.table].strides, strict=True):
        offset = offset + index * stride
    return offset


@dataclass(frozen=True)
class Reach:
    """The largest absolute values of forms whose atoms have these ``limits``; tables belong to
    ``program``.
    """

    program: Program
    limits: Limits

    def are_narrow(self, forms: Iterable[Form]) -> bool:
        """Tell whether all intermediate values of the forms fit in 32 bits."""
        return all(self.of(form) < NARROW for form in forms)

    def of(self, form: Form) -> int:
        """Return a bound on the magnitude of a form and of all that it is computed of."""
        low, high = min(form.constant, 0), max(form.constant, 0)
        inside = 0
        for atom, coefficient in form.terms:
            ends = span(Form(((atom, coefficient),)), self.limits)
            if ends is None:
                return UNKNOWN
            low, high = low + min(*ends, 0), high + max(*ends, 0)
            inside = max(inside, abs(coefficient), self._within(atom))
        return max(-low, high, inside)

    def _within(self, atom: Atom) -> int:
        """Bound the values that an atom is computed from."""
        match atom:
            case Quotient(dividend, divisor):
                return max(self.of(dividend), divisor)
            case Entry(table, indices):
                found = [self.of(index) for index in indices]
                if table in self.program.operand:
                    found.append(self.of(offset_of(self.program, atom)))
                return max(found, default=0)
        return 0

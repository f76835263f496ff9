"""Bound the integers that occur while an index is computed: kernels use 32 bits or 64.

This is the one place that decides. Dividends count as well as quotients, and so does every partial
sum, in whatever order code adds up its terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.spaces.algebra.atoms import Atom, Entry, Quotient
from tilewright.spaces.algebra.index import Index, total
from tilewright.spaces.language.program import Program

NARROW = 2**31 - 2**16
"""The largest offset of 32 bits, with room for tiles that stick out of their arrays."""
UNKNOWN = 2**63


def place_of(program: Program, entry: Entry) -> Index:
    """Find the place of an entry of an index table, in elements from its start."""
    return total(zip(entry.indices, program.operand[entry.table].strides, strict=True))


@dataclass(frozen=True)
class Reach:
    """The largest absolute values of indices; tables belong to ``program``."""

    program: Program

    def are_narrow(self, indices: Iterable[Index]) -> bool:
        """Tell whether all intermediate values of the indices fit in 32 bits."""
        return all(self.of(index) < NARROW for index in indices)

    def of(self, index: Index) -> int:
        """Return a bound on the magnitude of an index and of all that it is computed of."""
        low, high = min(index.constant, 0), max(index.constant, 0)
        inside = 0
        for atom, coefficient in index.terms:
            least, most = atom.span
            if least is None or most is None:
                return UNKNOWN
            ends = (coefficient * least, coefficient * most)
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
                    found.append(self.of(place_of(self.program, atom)))
                return max(found, default=0)
        return 0

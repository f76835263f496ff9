"""The offsets of elements in the code of a row; entries of tables are loaded into variables
first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.spaces.algebra.atoms import Atom, Entry, Quotient, Remainder
from tilewright.spaces.algebra.index import Index, total, variable
from tilewright.spaces.cpu.vectors.moves import narrow
from tilewright.spaces.language.program import Program


@dataclass
class Places:
    """Computes the C text of indices.

    ``axes`` are the variables of axes, ``pointers`` those of tables. Each entry is loaded once, by
    a line that is added to ``lines``.
    """

    program: Program
    axes: Mapping[str, Index]
    pointers: Mapping[str, str]
    prefix: str
    lines: list[str] = field(default_factory=list)
    loaded: dict[str, Index] = field(default_factory=dict)

    def index(self, place: Index) -> Index:
        """Return an index of C variables."""
        return self._resolved(place.at(self.axes))

    def _resolved(self, place: Index) -> Index:
        return place.replaced(self._atom)

    def _atom(self, atom: Atom) -> Index:
        match atom:
            case Entry():
                return self._entry(atom)
            case Quotient(dividend, divisor):
                return self._resolved(dividend) // divisor
            case Remainder(dividend, divisor):
                return self._resolved(dividend) % divisor
        return Index(((atom, 1),))

    def _entry(self, entry: Entry) -> Index:
        operand = self.program.operand[entry.table]
        assert operand.drawn is not None
        at = total(zip(map(self._resolved, entry.indices), operand.strides, strict=True))
        text = narrow(operand.dtype, f"{self.pointers[entry.table]}[{at.text}]")
        if text not in self.loaded:
            name = f"{self.prefix}{len(self.loaded)}"
            self.lines.append(f"const long {name} = tw_entry({text}, {operand.drawn.below});")
            self.loaded[text] = variable(name, operand.drawn.below)
        return self.loaded[text]

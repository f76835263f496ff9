"""Indices of parts as C: where a row has its elements, and which keys count for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.algebra.atoms import Atom, Entry, Quotient, Variable, names_of
from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.products.reach import place_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.language.program import Program


@dataclass(frozen=True)
class IndexText:
    """``variables`` are the C variables of parts; ``buffers`` those of integer operands. Numbers
    are of the C type ``integer``, literals end with ``suffix``; ``entry`` reads an element of a
    table as such a number. Where ``clamps``, keys that bounds give may be beyond 32 bits."""

    program: Program
    variables: Mapping[str, str]
    buffers: Mapping[str, str]
    integer: str = "long"
    suffix: str = "L"
    entry: str = "(long){buffer}[{place}]"
    clamps: bool = False

    def text(self, index: Index) -> str:
        """C text of a whole number of any sign, in parentheses."""
        words = [f"{self._number(c)} * {self._atom(atom)}" for atom, c in index.terms]
        return f"({' + '.join([*words, self._number(index.constant)])})"

    def knowing(self, variables: Mapping[str, str]) -> IndexText:
        """Return the same with further variables."""
        return replace(self, variables={**self.variables, **variables})

    def bounds(self, indices: Iterable[Index], key: Part, low: str, high: str) -> list[str]:
        """C statements that set ``low`` to the first key for which no index is negative, and
        ``high`` to one more than the last."""
        lines = [f"{low} = 0;", f"{high} = {key.extent};"]
        for index in indices:
            step, rest = index.coefficient(key.name), index.without([key.name])
            if step > 0:
                lines.append(f"{low} = tw_most({low}, -{self._quotient(rest, step)});")
            elif step < 0:
                last = self._quotient(rest, -step)
                lines.append(f"{high} = tw_least({high}, {last} + 1);")
            else:
                lines.append(f"if ({self.text(rest)} < 0) {high} = 0;")
        if self.clamps:
            lines.append(f"{low} = tw_least({low}, {key.extent});")
            lines.append(f"{high} = tw_most({high}, 0);")
        return lines

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Quotient(dividend, divisor):
                return self._quotient(dividend, divisor)
            case Entry(table, below=int(below)):
                place = self.text(place_of(self.program, atom))
                entry = self.entry.format(buffer=self.buffers[table], place=place)
                return f"tw_entry({entry}, {self._number(below)})"
            case Variable(name, extent):
                return self._number(0) if extent == 1 else self.variables[name]
        raise TypeError(f"{atom} has no text")

    def _quotient(self, dividend: Index, divisor: int) -> str:
        return f"tw_quotient({self.text(dividend)}, {self._number(divisor)})"

    def _number(self, value: int) -> str:
        return f"{value}{self.suffix}"


def split(
    number: str, parts: Sequence[Part], names: Mapping[str, str], integer: str = "long"
) -> list[str]:
    """C declarations of parts, the last the fastest, from the number that they make together."""
    lines = []
    rest = number
    for part in reversed(parts):
        lines.append(f"const {integer} {names[part.name]} = {rest} % {part.extent};")
        rest = f"{rest} / {part.extent}"
    return lines[::-1]


def spans(
    first: str, last: str, parts: Sequence[Part], names: Mapping[str, str], integer: str = "long"
) -> list[str]:
    """C declarations of the least and the greatest value of each part, ``low_NAME`` and
    ``high_NAME``, over the numbers from ``first`` to ``last``."""
    lines = []
    for part in reversed(parts):
        low, high, n = f"low_{names[part.name]}", f"high_{names[part.name]}", part.extent
        lines += [
            f"const int same_{low} = {first} / {n} == {last} / {n};",
            f"const {integer} {low} = same_{low} ? {first} % {n} : 0;",
            f"const {integer} {high} = same_{low} ? {last} % {n} : {n - 1};",
        ]
        first, last = f"{first} / {n}", f"{last} / {n}"
    return lines


def extreme(index: Index, rows: Mapping[str, str], most: bool) -> Index | None:
    """Return the index with variables in the place of ``rows``, parts by their C variables, so that
    none of their values gives more, or less if not ``most``; None if some row is read other than by
    steps."""
    terms: list[tuple[Atom, int]] = []
    for atom, coefficient in index.terms:
        if isinstance(atom, Variable) and atom.text in rows:
            end = "high" if (coefficient > 0) == most else "low"
            terms.append((Variable(f"{end}_{rows[atom.text]}"), coefficient))
        elif not names_of(atom).isdisjoint(rows):
            return None
        else:
            terms.append((atom, coefficient))
    return Index(tuple(terms), index.constant)

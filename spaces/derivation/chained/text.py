"""Forms of parts as C: where a row has its elements, and which keys count for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.derivation.products.forms import Atom, Entry, Form, Quotient, axes_of
from tilewright.spaces.derivation.products.splitting import Indexing, Part
from tilewright.spaces.language.program import Program


@dataclass(frozen=True)
class FormText:
    """``variables`` are the C variables of parts; ``buffers`` those of integer operands. Numbers
    are of the C type ``integer``, literals end with ``suffix``; ``entry`` reads an element of a
    table as such a number. Where ``clamps``, keys that bounds give may be beyond 32 bits."""

    program: Program
    indexing: Indexing
    variables: Mapping[str, str]
    buffers: Mapping[str, str]
    integer: str = "long"
    suffix: str = "L"
    entry: str = "(long){buffer}[{place}]"
    clamps: bool = False

    def text(self, form: Form) -> str:
        """C text of a whole number of any sign, in parentheses."""
        words = [f"{self._number(c)} * {self._atom(atom)}" for atom, c in form.terms]
        return f"({' + '.join([*words, self._number(form.constant)])})"

    def knowing(self, variables: Mapping[str, str]) -> FormText:
        """Return the same with further variables."""
        return replace(self, variables={**self.variables, **variables})

    def bounds(self, forms: Iterable[Form], key: Part, low: str, high: str) -> list[str]:
        """C statements that set ``low`` to the first key for which no form is negative, and
        ``high`` to one more than the last."""
        lines = [f"{low} = 0;", f"{high} = {key.extent};"]
        for form in forms:
            step = form.coefficient(key.name)
            rest = Form(tuple(t for t in form.terms if t[0] != key.name), form.constant)
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
        if isinstance(atom, Quotient):
            return self._quotient(atom.dividend, atom.divisor)
        if isinstance(atom, Entry):
            strides = self.program.operand[atom.table].strides
            place = Form()
            for index, stride in zip(atom.indices, strides, strict=True):
                place = place + index * stride
            entry = self.entry.format(buffer=self.buffers[atom.table], place=self.text(place))
            return f"tw_entry({entry}, {self._number(self.indexing.limits[atom.table])})"
        if self.indexing.limits.get(atom) == 1:
            return self._number(0)
        return self.variables[atom]

    def _quotient(self, dividend: Form, divisor: int) -> str:
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


def extreme(form: Form, rows: Mapping[str, str], most: bool) -> Form | None:
    """Return the form with variables in the place of ``rows``, parts by their C variables, so that
    none of their values gives more, or less if not ``most``; None if some row is read other than by
    steps."""
    terms: list[tuple[Atom, int]] = []
    for atom, coefficient in form.terms:
        if isinstance(atom, str) and atom in rows:
            terms.append(
                (f"{'high' if (coefficient > 0) == most else 'low'}_{rows[atom]}", coefficient)
            )
        elif not set(axes_of(atom)).isdisjoint(rows):
            return None
        else:
            terms.append((atom, coefficient))
    return Form(tuple(terms), form.constant)

"""Indices of parts as C: where a row has its elements, and which keys count for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tilewright.spaces.algebra.atoms import Atom, Entry, Variable, names_of
from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.products.splitting import Part


def in_c(index: Index, names: Mapping[str, str], loaded: Callable[[Entry], Index]) -> str:
    """C text of a whole number, with ``names`` in the place of parts and entries of tables as they
    are ``loaded``; in parentheses, unless it is one word."""
    parts = {
        part.text: variable(names[part.text], part.extent) if part.extent != 1 else Index()
        for part in index.variables
    }
    return str(index.at(parts).loaded(loaded))


def key_bounds(
    chained: RowsAndKeys,
    indices: Iterable[Index],
    low: str,
    high: str,
    text: Callable[[Index], str],
    keys: str = "",
) -> list[str]:
    """C statements that set ``low`` to the first key for which no index is negative, and
    ``high`` to one more than the last; ``text`` writes an index. ``keys`` is the C variable of the
    number of keys, where calls give it."""
    key = chained.key
    end = keys or f"{key.extent}"
    lines = [f"{low} = 0;", f"{high} = {end};"]
    for index in indices:
        step, rest = index.coefficient(key.name), index.without([key.name])
        if step > 0:
            lines.append(f"{low} = tw_most({low}, {text(rest // step * -1)});")
        elif step < 0:
            lines.append(f"{high} = tw_least({high}, {text(rest // -step + 1)});")
        else:
            lines.append(f"if ({text(rest)} < 0) {high} = 0;")
    if chained.has_far_bounds:
        lines.append(f"{low} = tw_least({low}, {end});")
        lines.append(f"{high} = tw_most({high}, 0);")
    return lines


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

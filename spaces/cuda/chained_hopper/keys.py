"""Which keys count for rows of a tile, as C: by the greatest and the least value of each bound.

A bound is ``c * key + rest >= 0``, and ``rest`` depends on the row alone. Of the rows of a tile,
the greatest ``rest`` says which keys count for any, the least which count for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained_hopper.tiles import RowTiles
from spaces.derivation.chained.text import FormText, extreme, spans, split

FUNCTIONS = """\
TW_INLINE i32 tw_least(i32 a, i32 b) { return a < b ? a : b; }
TW_INLINE i32 tw_most(i32 a, i32 b) { return a > b ? a : b; }
TW_INLINE i32 tw_quotient(i32 a, i32 b) { return a / b - (a % b < 0); }
TW_INLINE i32 tw_entry(i32 a, i32 b) { return tw_least(tw_most(a, 0), b - 1); }
"""
"""What the lines below call."""


@dataclass(frozen=True)
class KeyRange:
    """``names`` are the C variables of all parts that number heads and rows."""

    tiles: RowTiles
    names: Mapping[str, str]

    @property
    def _forms(self) -> FormText:
        program = self.tiles.chained.program
        tables = {operand.name: operand.name for operand in program.operands}
        entry = "(i32)tw::load_global({buffer} + {place})"
        return FormText(program, self.tiles.chained.indexing, self.names, tables, "i32", "", entry)

    def of_row(self, row: str, low: str, high: str) -> list[str]:
        """C statements that set ``low`` to the first key of a row, and ``high`` to one past its
        last."""
        chained = self.tiles.chained
        return _block(
            [
                *split(row, self.tiles.rows, self.names, "i32"),
                *self._forms.bounds(chained.bounds, chained.key, low, high),
            ]
        )

    def of_any(self, first: str, last: str, low: str, high: str) -> list[str]:
        """The same of the keys that any of the rows from ``first`` to ``last`` has, as far as
        intervals tell."""
        return self._of_rows(first, last, True, low, high)

    def of_all(self, first: str, last: str, low: str, high: str) -> list[str]:
        """The same of the keys that all of these rows have."""
        return self._of_rows(first, last, False, low, high)

    def _of_rows(self, first: str, last: str, most: bool, low: str, high: str) -> list[str]:
        chained = self.tiles.chained
        rows = {part.name: self.names[part.name] for part in self.tiles.rows}
        found = [extreme(form, rows, most) for form in chained.bounds]
        known = [form for form in found if form is not None]
        ends = [f"{end}_{name}" for name in rows.values() for end in ("low", "high")]
        forms = self._forms.knowing({end: end for end in ends})
        lines = spans(first, last, self.tiles.rows, self.names, "i32")
        lines += forms.bounds(known, chained.key, low, high)
        if not most and len(known) < len(found):
            lines.append(f"{high} = 0;")
        return _block(lines)


def _block(lines: Sequence[str]) -> list[str]:
    return ["{", *indented(lines), "}"]

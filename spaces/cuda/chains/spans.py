"""Which keys some rows see: any of them, so that no other tile is visited, or all of them, so that
a tile tests nothing."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.derivation.chained.text import extreme, key_bounds, spans


@dataclass(frozen=True)
class Spans:
    """``access`` knows the block's product."""

    access: Access

    @property
    def _rows(self) -> dict[str, str]:
        return {part.name: f"w{i}" for i, part in enumerate(self.access.chained.rows)}

    def _bounds(self, most: bool) -> list[Index | None]:
        return [extreme(index, self._rows, most) for index in self.access.chained.bounds]

    @property
    def can_be_whole(self) -> bool:
        """Whether it is known where all keys count."""
        return not self.access.chained.conditions and None not in self._bounds(most=False)

    def within(self, keys: int) -> list[str]:
        """C tests whether a ``tile`` of so many keys begins where those of all rows have begun, by
        :meth:`whole_lines`, and ends before one's have ended; none if that is not known."""
        tests = ["tile >= whole_first", f"tile + {keys} <= whole_last"]
        return tests if self.can_be_whole else []

    def ends(self, keys: int) -> tuple[bool, bool]:
        """Whether some row's keys begin after the first, or end before the last of a tile."""
        key = self.access.chained.key
        steps = [index.coefficient(key.name) for index in self.access.chained.bounds]
        return any(s > 0 for s in steps), any(s <= 0 for s in steps) or key.extent % keys > 0

    def block_lines(self, first_row: str, rows: int, first: str, last: str) -> list[str]:
        """Set ``first`` and ``last`` to where the keys of any of ``rows`` begin and end."""
        return self._lines(first_row, rows, first, last, most=True)

    def whole_lines(self, first_row: str, rows: int, first: str, last: str) -> list[str]:
        """Set them to where the keys that all rows see begin and end."""
        if not self.can_be_whole:
            return []
        return self._lines(first_row, rows, first, last, most=False)

    def _lines(self, first_row: str, rows: int, first: str, last: str, most: bool) -> list[str]:
        integer, end = self.access.integer, self.access.chained.row_count - 1
        known = [index for index in self._bounds(most) if index is not None]
        names = [f"{e}_{name}" for name in self._rows.values() for e in ("low", "high")]
        access = self.access.knowing({name: name for name in names})
        body = [
            f"const {integer} upper = tw_least({first_row}, {end});",
            f"const {integer} lower = tw_least({first_row} + {rows - 1}, {end});",
            *spans("upper", "lower", self.access.chained.rows, self._rows, integer),
            *key_bounds(self.access.chained, known, first, last, access.text),
        ]
        return [f"{integer} {first}, {last};", "{", *(f"  {line}" for line in body), "}"]

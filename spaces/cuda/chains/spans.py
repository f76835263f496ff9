"""The ranges of keys that some rows see: any of them, or all of them.

Tiles outside of the first range are not visited; tiles within the second test nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.ends import keys_of, rows_of
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.text import extreme, key_bounds, spans
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class Spans:
    """The ranges of keys of a block, whose product ``access`` knows."""

    access: Access[RowsAndKeys]

    @property
    def _rows(self) -> dict[str, str]:
        return {part.name: f"w{i}" for i, part in enumerate(self.access.view.rows)}

    def _bounds(self, most: bool) -> list[Index | None]:
        return [extreme(index, self._rows, most) for index in self.access.view.bounds]

    @property
    def can_be_whole(self) -> bool:
        """True if it can be known where all keys count."""
        return not self.access.view.conditions and None not in self._bounds(most=False)

    def within(self, keys: int) -> list[str]:
        """Return C tests that a ``tile`` of ``keys`` keys lies where all rows see all keys.

        They are that it begins where the keys of all rows have begun, and ends before any row's
        have ended, by :meth:`whole_lines`; empty if that is not known.
        """
        tests = ["tile >= whole_first", f"tile + {keys} <= whole_last"]
        return tests if self.can_be_whole else []

    def ends(self, keys: int) -> tuple[bool, bool]:
        """Return whether some row's keys begin after the first of a tile, or end before the
        last."""
        view = self.access.view
        steps = [index.coefficient(view.key.name) for index in view.bounds]
        cut = not keys_of(view).is_whole(keys)
        return any(s > 0 for s in steps), any(s <= 0 for s in steps) or cut

    def block_lines(self, first_row: str, rows: int, first: str, last: str) -> list[str]:
        """Print ``first`` and ``last``, between which are the keys that any of ``rows`` rows
        sees."""
        return self._lines(first_row, rows, first, last, most=True)

    def whole_lines(self, first_row: str, rows: int, first: str, last: str) -> list[str]:
        """Print ``first`` and ``last``, between which are the keys that all of ``rows`` rows
        see."""
        if not self.can_be_whole:
            return []
        return self._lines(first_row, rows, first, last, most=False)

    def _lines(self, first_row: str, rows: int, first: str, last: str, most: bool) -> list[str]:
        view, integer = self.access.view, self.access.integer
        end = rows_of(view).last
        known = [index for index in self._bounds(most) if index is not None]
        names = [f"{e}_{name}" for name in self._rows.values() for e in ("low", "high")]
        access = self.access.knowing({name: name for name in names})
        body = [
            f"const {integer} upper = tw_least({first_row}, {end});",
            f"const {integer} lower = tw_least({first_row} + {rows - 1}, {end});",
            *spans("upper", "lower", view.rows, self._rows, integer),
            *key_bounds(view, known, first, last, access.text, keys_of(view).count),
        ]
        return [f"{integer} {first}, {last};", *CUDA.block(*body)]

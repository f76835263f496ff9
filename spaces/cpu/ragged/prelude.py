"""The C that kernels over ranges share: how workers find the rows of their entries.

- ``tw_within(i, low, high)``: ``i``, clamped to ``low`` and ``high``.
- ``tw_row_of_D(starts, rows, entry)``: the first row that does not begin before an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

from tilewright.spaces.cpu.kept import prelude as kept
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES

STARTS = ("int32", "int64")
"""The types of arrays of rows' starts."""

_WITHIN = """\
static inline long tw_within(long i, long low, long high) {
  return i < low ? low : i > high ? high : i;
}
"""
_ROW_OF = """\
static inline long tw_row_of_@D@(const @T@ *starts, long rows, long entry) {
  long first = 0, end = rows;
  while (first < end) {
    const long middle = first + (end - first) / 2;
    if (starts[middle] < entry) first = middle + 1; else end = middle;
  }
  return first;
}
"""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget, element: str) -> str:
    """Return the C text for kernels in ``element`` whose programs call ``functions``."""
    return kept.prelude(functions, target, element) + _rows()


def shared(preludes: Iterable[str]) -> str:
    """Return the definitions of these alone if any of some preludes has them; else the empty
    string."""
    return _rows() if any(_rows() in text for text in preludes) else ""


@lru_cache(maxsize=1)
def _rows() -> str:
    found = (_ROW_OF.replace("@D@", d).replace("@T@", TABLE_TYPES[d]) for d in STARTS)
    return "".join([_WITHIN, *found])

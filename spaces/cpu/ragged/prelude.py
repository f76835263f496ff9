"""The C that kernels over ranges share: how workers find the rows of their entries.

- ``tw_within(i, low, high)``: ``i``, clamped to ``low`` and ``high``.
- ``tw_row_of_D(starts, rows, entry)``: the first row that does not begin before an entry.
"""

from __future__ import annotations

from collections.abc import Set
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
    text = kept.prelude(functions, target, element) + _WITHIN
    for dtype in STARTS:
        text += _ROW_OF.replace("@D@", dtype).replace("@T@", TABLE_TYPES[dtype])
    return text

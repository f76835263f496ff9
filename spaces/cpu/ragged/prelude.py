"""The C that kernels over ranges share: how workers find the rows of their entries, and how
vectors gather.

- ``tw_within(i, low, high)``: ``i``, clamped to ``low`` and ``high``.
- ``tw_row_of_D(starts, rows, entry)``: the first row that does not begin before an entry.
- For each type D of tables, ``tw_places_D(p)``: a vector of entries, one after the other;
  ``tw_first_places_D(p, n)``: the first ``n`` of them, fewer than a vector has, and zeros.
- In float32, ``tw_load_half_float32(p)`` and ``tw_lookup_float32(p, o)``: see ``spaces.cpu.isa``.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

from tilewright.spaces.cpu import isa
from tilewright.spaces.cpu.kept import prelude as kept
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.derivation.ragged.served import STARTS

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
_PLACES = """\
typedef @T@ tw_places_@D@_vector
    __attribute__((vector_size(TW_LANES * sizeof(@T@)), aligned(sizeof(@T@)), may_alias));
static inline vi tw_places_@D@(const @T@ *p) {
  return __builtin_convertvector(*(const tw_places_@D@_vector *)p, vi);
}
static inline vi tw_first_places_@D@(const @T@ *p, long n) { return @FIRST@; }
"""
_FIRST = {
    "int32": "(vi)tw_load_first_float32((const void *)p, n)",
    "uint16": "(vi)((vu)tw_load_first_bfloat16(p, n) >> 16)",
}
"""The first entries as vectors that are loaded with a mask, by the types that have one."""
PLACES = tuple(name for name in TABLE_TYPES if name != "int64")
"""The types of tables whose entries vectors of whole numbers hold as they are."""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget, element: str) -> str:
    """Return the C text for kernels in ``element`` whose programs call ``functions``."""
    return kept.prelude(functions, target, element) + _own(target.isa, element)


def shared(target: CpuTarget, preludes: Iterable[str]) -> str:
    """Return the definitions of these alone if any of some preludes has them; else the empty
    string."""
    own = _own(target.isa, "float32")
    return own if any(own in text for text in preludes) else ""


@lru_cache(maxsize=8)
def _own(name: str, element: str) -> str:
    found = [_ROW_OF.replace("@D@", d).replace("@T@", TABLE_TYPES[d]) for d in STARTS]
    if element == "float32":
        for dtype in PLACES:
            text = _PLACES.replace("@D@", dtype).replace("@T@", TABLE_TYPES[dtype])
            one_by_one = f"tw_table_{dtype}(p, tw_ramp(0), n)"
            found.append(text.replace("@FIRST@", _FIRST.get(dtype, one_by_one)))
        found += [isa.half_load(name), isa.lookup(name)]
    return "".join([_WITHIN, *found])

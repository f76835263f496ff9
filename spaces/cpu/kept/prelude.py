"""The C text of kernels along kept axes: that of rows and, for each type D, loads at borders.

- ``tw_skip_D(p)``: a vector of every second element;
- ``tw_between_D(p, step, low, high, outside)``: lanes from ``low`` to before ``high``, ``step``
  elements apart, and ``outside`` in all others, whose memory is not touched.
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from tilewright.spaces.cpu import isa
from tilewright.spaces.cpu.abi import MOST
from tilewright.spaces.cpu.rows import prelude as rows
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles, simd, transposing


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget, element: str) -> str:
    """Return the C text for kernels in ``element`` whose programs call ``functions``."""
    types = doubles.C_TYPES if element == "float64" else simd.C_TYPES
    names = ("float64", "float32") if element == "float64" else ("float32", "bfloat16")
    lanes = target.lanes(8 if element == "float64" else 4)
    masked = isa.masked_load(target.isa) if element == "float32" else ""
    text = rows.prelude(functions, target, element) + _BORDERS
    text += masked + _MASKED_SKIP if masked else ""
    text += transposing.prelude(lanes) if element == "float32" else ""
    for name in names:
        found = _AT_ONCE if masked and name == "float32" else ""
        access = (_ELEMENTS + _BETWEEN).replace("@FOUND@", found)
        text += access.replace("@D@", name).replace("@T@", types[name])
    text = text.replace("@LANES@", str(lanes))
    for name, order in _every_second(lanes).items():
        text = text.replace(f"@{name}@", ", ".join(map(str, order)))
    return text


def _every_second(lanes: int) -> dict[str, list[int]]:
    """Return the two shuffles that take the even lanes of one vector and the odd lanes of another:
    pairs of both within each group of four lanes, which is one instruction, then each pair to its
    place."""
    if lanes == 2:
        return {"PAIRS": [0, 3], "PARTS": [0, 1]}
    starts = range(0, lanes, 4)
    pairs = [lane for s in starts for lane in (s, s + 2, lanes + s + 1, lanes + s + 3)]
    parts = [s + half + i for half in (0, 2) for s in starts for i in range(2)]
    return {"PAIRS": pairs, "PARTS": parts}


_EVERY_SECOND = """\
static inline vf tw_every_second(vf a, vf b) {
  const vf x = tw_shuffle(a, b, @PAIRS@);
  return tw_shuffle(x, x, @PARTS@);
}
"""
_LANES_BEFORE = """\
static inline long tw_lanes_before(long left, long step) {
  return left <= 0 ? 0 : (left + step - 1) / step;
}
"""
_BORDERS = _EVERY_SECOND + MOST + _LANES_BEFORE

_ELEMENTS = """\
static inline vf tw_skip_@D@(const @T@ *p) {
  return tw_every_second(tw_load_@D@(p), tw_load_@D@(p + @LANES@ - 1));
}
static inline vf tw_some_@D@(const @T@ *p, long step, long low, long high) {
  @T@ x[@LANES@] = {0};
  for (long i = low; i < high; i++) x[i] = p[i * step];
  return tw_load_@D@(x);
}
"""

_AT_ONCE = """\
step == 1 ? tw_masked(p, low, high) : step == 2 ? tw_masked_skip(p, low, high) :
    """
_MASKED_SKIP = """\
static inline vf tw_masked_skip(const float *p, long low, long high) {
  const long first = tw_most(2 * low - @LANES@ + 1, 0), end = tw_most(2 * high - @LANES@, first);
  const vf a = tw_masked(p, tw_least(2 * low, @LANES@), tw_least(2 * high - 1, @LANES@));
  const vf b = tw_masked(p + @LANES@ - 1, first, end);
  return tw_every_second(a, b);
}
"""
_BETWEEN = """\
static inline vf tw_between_@D@(const @T@ *p, long step, long low, long high, vf outside) {
  if (high <= low) return outside;
  const vf x = @FOUND@tw_some_@D@(p, step, low, high);
  return tw_select(tw_first(high) & ~tw_first(low), x, outside);
}
"""

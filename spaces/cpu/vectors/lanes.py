"""C functions for reductions: the lanes of a vector to one value, and what belongs to that.

- ``tw_across_R(x)``: the sum, prod, max or min of all lanes; NaN if any lane is.
- ``tw_first(n)``: a mask of the first ``n`` lanes, of all if there are fewer.
- ``tw_above(a, b)``: a mask of the lanes whose ``a`` comes before ``b`` as a maximum: it is
  greater, or it alone is NaN; ``tw_below`` for a minimum. ``tw_pick(mask, a, b)`` selects whole
  numbers.
- ``tw_begun_max(x)``: ``x``, but zero for the identity of a maximum; ``tw_begun_min`` for a
  minimum.
- ``tw_where(x, best, places)``: the least of the ``places`` of the lanes that have ``best``, or
  that are NaN if it is.
- ``tw_add_block(sum, excess, block)``: adds the sum of a block to a long sum (Kahan, "Further
  remarks on reducing truncation errors", CACM 8, 1965). ``excess`` is the amount by which rounding
  has made the sum too great, zero if it is infinite.
"""

from __future__ import annotations

from tilewright.spaces.cpu.vectors.simd import halves

ACROSS = {"sum": "x + y", "prod": "x * y", "max": "tw_max(x, y)", "min": "tw_min(x, y)"}
"""The C text that reduces two values to one, for each reducer that keeps no place."""


def prelude(lanes: int, c_type: str = "float") -> str:
    """Return the C definitions for lanes of ``c_type``; they stand behind those of ``simd`` and of
    ``vector_math`` with ``max``, ``min`` and ``select``."""
    text = "".join(across(name, value, lanes, c_type) for name, value in ACROSS.items())
    numbers = ", ".join(map(str, range(lanes)))
    text += _MASKS.replace("@NUMBERS@", numbers).replace("@LANES@", str(lanes))
    text = text.replace(
        "@ADDED@", added("tw_add_block", "static __attribute__((noinline, cold, unused))\n")
    )
    return text.replace("@T@", c_type)


def added(name: str, attributes: str) -> str:
    """Return the C function that adds a block to a long sum, as ``tw_add_block`` does."""
    return f"{attributes}void {name}(vf *sum, vf *excess, vf block) {{{_ADDED}}}\n"


def across(name: str, value: str, lanes: int, c_type: str = "float") -> str:
    """Return the C text of ``tw_across_name(x)``: log2(lanes) times the ``value`` of ``x`` and of
    ``y``, which is ``x`` with its halves exchanged, then its quarters, and so on."""
    turns = [f"  y = tw_shuffle(x, x, {order}); x = {value};" for order in halves(lanes)]
    body = "\n".join(turns)
    head = f"static inline {c_type} tw_across_{name}(vf x) {{"
    return f"{head}\n  vf y;\n{body}\n  return x[0];\n}}\n"


_ADDED = """
  const vf term = block - *excess, total = *sum + term, e = (total - *sum) - term;
  *sum = total;
  *excess = tw_select(e - e == tw_set(0), e, tw_set(0));
"""
_MASKS = """\
static inline vi tw_first(long n) {
  return (vi){@NUMBERS@} < (int)tw_least(n, @LANES@);
}
static inline vi tw_above(vf a, vf b) { return (a > b) | ((a != a) & (b == b)); }
static inline vi tw_below(vf a, vf b) { return (a < b) | ((a != a) & (b == b)); }
@ADDED@static inline vf tw_begun_max(vf x) { return (vf)((vi)x & ~(x == -__builtin_inff())); }
static inline vf tw_begun_min(vf x) { return (vf)((vi)x & ~(x == __builtin_inff())); }
static inline vi tw_pick(vi mask, vi a, vi b) { return (mask & a) | (~mask & b); }
static inline long tw_where(vf x, @T@ best, vi places) {
  long least = 0x7fffffff;
  for (int i = 0; i < @LANES@; i++)
    if (x[i] == best || (x[i] != x[i] && best != best)) least = tw_least(least, places[i]);
  return least;
}
"""

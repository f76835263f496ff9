"""Whole numbers in vectors of 64 bits, where neither 32 bits nor floats hold them exactly.

``vl`` has a whole number and ``vd`` a double in each lane. Functions whose names end with ``_wide``
are those of :mod:`spaces.cpu.vectors.moves` for such vectors. ``tw_wide(x)`` is one number in all
lanes, ``tw_narrowed(mask)`` a mask as ``vi``, and ``tw_wide_OP(a, b)`` an operation of the
language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.cpu.vectors.moves import SMALL, TABLE_TYPES, narrow
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.language.evaluation import literal
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.meaning import Operations
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import Comparison, Expression

_FUNCTIONS = {"//": "tw_wide_quotient", "%": "tw_wide_remainder"}


def indices(lanes: int, vector: str, elements: Mapping[str, str]) -> str:
    """Return the C definitions that compute the places of elements; they stand behind those of
    ``moves``.

    ``elements`` maps the names by which functions call types to C types; ``vector`` is the C type
    of a register.
    """
    return "".join(_indices(lanes, vector, elements))


def values(lanes: int) -> str:
    """Return the C definitions that values need beside those of places; ``vf`` and ``vi`` are
    known."""
    return _with_lanes(_VALUES, lanes)


def numbers(lanes: int, magnitudes: Magnitudes, computed: Iterable[Expression]) -> str:
    """Return the C definitions of whole numbers as values, if places need none.

    Return the empty string if nothing that is ``computed`` takes integers.
    """
    return _numbers(lanes) if magnitudes.need_integers(computed) else ""


def shared(lanes: int, preludes: Sequence[str]) -> str:
    """Return the definitions of places and of values that some preludes of kernels in float32 have,
    each once."""
    elements = {**C_TYPES, **{dtype: TABLE_TYPES[dtype] for dtype in SMALL}}
    known = [*_indices(lanes, "vf", elements), values(lanes)]
    return "".join(text for text in known if any(text in each for each in preludes))


def _indices(lanes: int, vector: str, elements: Mapping[str, str]) -> Iterator[str]:
    yield _with_lanes(_RAMP, lanes)
    yield _INDICES
    for dtype, c_type in TABLE_TYPES.items():
        table = _TABLE.replace("@D@", dtype).replace("@T@", c_type)
        yield _with_lanes(table.replace("@X@", narrow(dtype, "p[o[i]]")), lanes)
    for dtype, c_type in elements.items():
        scattered = _SCATTERED.replace("@D@", dtype).replace("@T@", c_type)
        yield _with_lanes(scattered.replace("@V@", vector), lanes)


def _numbers(lanes: int) -> str:
    return _with_lanes(_RAMP + _VALUES, lanes)


def _with_lanes(text: str, lanes: int) -> str:
    every = ", ".join(map(str, range(lanes)))
    return text.replace("@NUMBERS@", every).replace("@LANES@", str(lanes))


@dataclass(frozen=True)
class WideCode(Operations[Written]):
    """The meaning (:class:`spaces.language.tree.Meaning`) of whole numbers as C on vectors of 64
    bits.

    Whoever folds an expression gives the text of its arrays and axes.
    """

    def number(self, value: float) -> Written:
        """Return the number in all lanes."""
        return Written(f"tw_wide({literal(value)}L)")

    def negation(self, inner: Written) -> Written:
        """Return the negation in each lane."""
        return Written(f"(-{inner})")

    def binary(self, operator: str, left: Written, right: Written) -> Written:
        """Return the operation; quotients and remainders are rounded down, and those by 0 are 0."""
        if operator in _FUNCTIONS:
            return Written(f"{_FUNCTIONS[operator]}({left}, {right})")
        return Written(f"({left} {operator} {right})")

    def comparison(self, operator: str, left: Written, right: Written) -> Written:
        """Return a mask of as many bits."""
        return Written(f"({left} {operator} {right})")

    def select(self, condition: Written, then: Written, otherwise: Written) -> Written:
        """Return the selection in each lane."""
        return Written(f"tw_wide_select({condition}, {then}, {otherwise})")

    def call(self, function: str, arguments: Sequence[Written]) -> Written:
        """Return a call of a function that keeps numbers whole."""
        return Written(f"tw_wide_{function}({', '.join(map(str, arguments))})")


@dataclass(frozen=True)
class Wide:
    """Writes the whole numbers of a program that floats do not hold exactly.

    ``leaf`` returns the C text of axes and entries as ``vl``, and the masks of comparisons that it
    knows by itself; ``real`` returns that of expressions as ``vf``.
    """

    magnitudes: Magnitudes
    leaf: Callable[[Expression], str | None]
    real: Callable[[Expression], str]

    def value(self, node: Expression) -> str | None:
        """Return a large whole number as ``vf``, rounded once; None for other nodes."""
        is_condition = isinstance(node, Comparison)
        if is_condition or not self.magnitudes.takes_integers(node):
            return None
        return f"tw_numbers_wide({self.whole(node)})"

    def mask(self, node: Comparison) -> str | None:
        """Return a comparison of large whole numbers as ``vi``; None for others.

        Integers are compared if both sides are whole, doubles otherwise.
        """
        large = self.magnitudes.compares_large(node)
        return f"tw_narrowed({self._compared(node)})" if large else None

    def whole(self, node: Expression) -> str:
        """Return a whole number as ``vl``."""
        return node.fold(WideCode(), self._known).text

    def _known(self, node: Expression) -> Written | None:
        found = self.leaf(node)
        if found is None and isinstance(node, Comparison):
            found = self._compared(node)
        return None if found is None else Written(found)

    def _compared(self, node: Comparison) -> str:
        """Return a comparison's mask as ``vl``."""
        sides = node.left, node.right
        if all(map(self.magnitudes.is_integer, sides)):
            left, right = map(self.whole, sides)
        else:
            left, right = (f"tw_doubles({self._double(side)})" for side in sides)
        return f"({left} {node.operator} {right})"

    def _double(self, node: Expression) -> str:
        return self.whole(node) if self.magnitudes.is_large(node) else self.real(node)


_RAMP = """\
typedef long vl __attribute__((vector_size(8 * @LANES@)));
static inline vl tw_ramp_wide(long start) { return (vl){@NUMBERS@} + start; }
"""

_INDICES = """\
static inline vl tw_quotients_wide(vl x, long d) { return x / d + (x % d < 0); }
static inline vl tw_entries_wide(vi i, int below) {
  return __builtin_convertvector(tw_entries(i, below), vl);
}
"""

_TABLE = """\
static inline vi tw_table_wide_@D@(const @T@ *p, vl o, long n) {
  vi x = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = @X@;
  return x;
}
"""

_SCATTERED = """\
static inline @V@ tw_scattered_wide_@D@(const @T@ *p, vl o, long n) {
  @T@ x[@LANES@] = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[o[i]];
  return tw_load_@D@(x);
}
"""

_VALUES = """\
typedef double vd __attribute__((vector_size(8 * @LANES@)));
#define tw_doubles(x) __builtin_convertvector(x, vd)
#define tw_integers(x) __builtin_convertvector(x, vl)
static inline vl tw_wide(long x) { return (vl){0} + x; }
static inline vl tw_widened(vi x) { return __builtin_convertvector(x, vl); }
static inline vi tw_narrowed(vl x) { return __builtin_convertvector(x, vi); }
static inline vf tw_numbers_wide(vl x) { return __builtin_convertvector(x, vf); }
static inline vl tw_wide_select(vl mask, vl a, vl b) { return (mask & a) | (~mask & b); }
static inline vl tw_wide_max(vl a, vl b) { return tw_wide_select(a > b, a, b); }
static inline vl tw_wide_min(vl a, vl b) { return tw_wide_select(a < b, a, b); }
static inline vl tw_wide_relu(vl a) { return a & (a > 0); }
static inline vl tw_wide_abs(vl a) { return tw_wide_max(a, -a); }
static inline vl tw_wide_floor(vl a) { return a; }
static inline vl tw_wide_quotient(vl a, vl b) {
  const vl none = b == 0, by = b - none, q = a / by, rest = a - by * q;
  return ~none & (q + ((rest != 0) & ((rest < 0) != (by < 0))));
}
static inline vl tw_wide_remainder(vl a, vl b) {
  return (b != 0) & (a - b * tw_wide_quotient(a, b));
}
"""

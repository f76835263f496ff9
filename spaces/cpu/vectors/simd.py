"""The vector types of generated C, by GCC's ``vector_size`` and without headers, and memory access.

``vf`` holds ``lanes`` float32 values; ``vi``, ``vu`` and ``vh`` hold as many int, unsigned and
unsigned short. ``tw_keep(x)`` is ``x`` and keeps it in a register. ``tw_fma(a, b, c)`` is ``a * b +
c``, rounded once if the machine can; compilers contract nothing by themselves. In memory, elements
have a type and need that element's alignment only; in registers they are float32. For each type D:

- ``tw_load_D(p)``, ``tw_store_D(p, x)``: a whole vector; a store rounds to nearest even.
- ``tw_load_first_D(p, n)``, ``tw_store_first_D(p, x, n)``: its first ``n`` lanes, ``0 < n <
  lanes``, and not one byte more; lanes that are not loaded are zero.
- ``tw_load_most_D(p, n)``, ``tw_store_most_D(p, x, n)``: all lanes, or the first ``n`` if fewer.
- ``tw_splat_D(p)``: one element in all lanes; ``tw_gather_D(p, stride, n)``: ``n`` elements that
  are ``stride`` apart, or as many as there are lanes.
- ``tw_transpose_D(p, stride, rows, columns, q, ld)``: reads up to ``lanes`` rows of ``lanes``
  elements, ``stride`` apart, and writes ``lanes`` whole vectors of their columns, ``ld`` apart;
  elements past ``rows`` and ``columns`` count as zero;
  ``tw_transpose_apart_D(p, at, rows, columns, q, ld)``: the same of rows at the places ``at``.

If there is a dot instruction, ``bfloat16x2`` is a type too: pairs that stay as they are, one word
in each lane. ``tw_dot_pairs(sum, a, b)`` adds both products of each lane's pairs.
``tw_load_pairs(p, apart, n)`` makes words of bfloat16 elements and those ``apart`` from them,
``tw_load_lone(p, n)`` of elements and zeros. ``tw_low_pairs(a, b)`` and ``tw_high_pairs(a, b)``
make them of the first and the second half of two ``vw``, which have twice as many bfloat16 elements
and are read by ``tw_load_words(p)``. The type ``bfloat16_terms`` is for pairs that begin at any
element: its ``n`` and ``columns`` count terms, and a last single term is paired with zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.cpu.isa import BFLOAT16_DOT, fma, keep, partial_access
from tilewright.spaces.cpu.vectors.exchanges import Exchanges

FLOATS = ("float32", "bfloat16")
"""The types in memory whose elements are float32 in registers."""
C_TYPES = {
    "float32": "float",
    "bfloat16": "unsigned short",
    "bfloat16x2": "tw_pair",
    "bfloat16_terms": "unsigned short",
}


def prelude(isa: str, lanes: int, bf16_dot: bool) -> str:
    """Return the C definitions of the vector types of ``lanes`` floats and of all access to
    memory."""
    low = [lane // 2 + lane % 2 * lanes for lane in range(lanes)]
    high = [lane + lanes // 2 for lane in low]
    values = {"LANES": str(lanes), "BYTES": str(4 * lanes)}
    values["LANE_NUMBERS"] = ", ".join(map(str, range(lanes)))
    values |= {"LOW": ", ".join(map(str, low)), "HIGH": ", ".join(map(str, high))}
    pairs = [word // 2 + word % 2 * 2 * lanes for word in range(4 * lanes)]
    values["LOW_PAIRS"] = ", ".join(map(str, pairs[: 2 * lanes]))
    values["HIGH_PAIRS"] = ", ".join(map(str, pairs[2 * lanes :]))
    text = _TYPES + _sum(lanes) + _FLOAT32 + _BFLOAT16 + partial_access(isa) + _WIDENING
    text += keep(isa) + fma(isa)
    access = _MOST + _transposition(lanes) + _transposition(lanes, apart=True)
    text += _for_dtype(access, "float32") + _for_dtype(access, "bfloat16")
    if bf16_dot:
        text += BFLOAT16_DOT + _PAIRS + _for_dtype(access, "bfloat16x2")
        text += _TERMS + _for_dtype(_transposition(lanes), "bfloat16_terms")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


_TYPES = """\
typedef float vf __attribute__((vector_size(@BYTES@)));
typedef int vi __attribute__((vector_size(@BYTES@)));
typedef unsigned vu __attribute__((vector_size(@BYTES@)));
typedef unsigned short vh __attribute__((vector_size(@BYTES@ / 2)));
typedef vf vf_any __attribute__((aligned(4), may_alias));
typedef vh vh_any __attribute__((aligned(2), may_alias));
#ifdef __clang__
#define tw_shuffle(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define tw_shuffle(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
static inline vf tw_broadcast(float x) { return x - (vf){0}; }
"""

_FLOAT32 = """\
static inline vf tw_load_float32(const float *p) { return *(const vf_any *)p; }
static inline void tw_store_float32(float *p, vf x) { *(vf_any *)p = x; }
static inline vf tw_splat_float32(const float *p) { return tw_broadcast(*p); }
"""

# Rounding to nearest even adds half a unit in the last place, less one where that place is even;
# a NaN must not be carried into infinity.
_BFLOAT16 = """\
static inline vf tw_widen(vh x) { return (vf)(__builtin_convertvector(x, vu) << 16); }
static inline vh tw_narrow(vf x) {
  vu bits = (vu)x, rounded = bits + 0x7fff + (bits >> 16 & 1), nan = (vu)(x != x);
  return __builtin_convertvector((((bits | 0x400000) & nan) | (rounded & ~nan)) >> 16, vh);
}
static inline vf tw_load_bfloat16(const unsigned short *p) {
  return tw_widen(*(const vh_any *)p);
}
static inline void tw_store_bfloat16(unsigned short *p, vf x) { *(vh_any *)p = tw_narrow(x); }
static inline vf tw_splat_bfloat16(const unsigned short *p) {
  return (vf)((unsigned)*p << 16 | (vu){0});
}
"""

_WIDENING = """\
static inline vf tw_load_first_bfloat16(const unsigned short *p, long n) {
  return tw_widen(tw_load_first_words(p, n));
}
static inline void tw_store_first_bfloat16(unsigned short *p, vf x, long n) {
  tw_store_first_words(p, tw_narrow(x), n);
}
"""

# A pair is the bits of two bfloat16, the earlier term in the lower half.
_PAIRS = """\
typedef unsigned tw_pair __attribute__((aligned(2), may_alias));
typedef vf vf_pairs __attribute__((aligned(2), may_alias));
static inline vf tw_load_bfloat16x2(const tw_pair *p) { return *(const vf_pairs *)p; }
static inline void tw_store_bfloat16x2(tw_pair *p, vf x) { *(vf_pairs *)p = x; }
static inline vf tw_splat_bfloat16x2(const tw_pair *p) { return (vf)(*p | (vu){0}); }
static inline vf tw_load_first_bfloat16x2(const tw_pair *p, long n) {
  return tw_load_first_float32((const void *)p, n);
}
static inline void tw_store_first_bfloat16x2(tw_pair *p, vf x, long n) {
  tw_store_first_float32((void *)p, x, n);
}
static inline vf tw_load_pairs(const unsigned short *p, long apart, long n) {
  vu low = (vu)tw_load_most_bfloat16(p, n), high = (vu)tw_load_most_bfloat16(p + apart, n);
  return (vf)(low >> 16 | high);
}
typedef unsigned short vw __attribute__((vector_size(@BYTES@)));
typedef vw vw_any __attribute__((aligned(2), may_alias));
static inline vw tw_load_words(const unsigned short *p) { return *(const vw_any *)p; }
static inline vf tw_low_pairs(vw a, vw b) {
  return (vf)__builtin_shufflevector(a, b, @LOW_PAIRS@);
}
static inline vf tw_high_pairs(vw a, vw b) {
  return (vf)__builtin_shufflevector(a, b, @HIGH_PAIRS@);
}
"""

_TERMS = """\
static inline vf tw_load_lone(const unsigned short *p, long n) {
  return (vf)((vu)tw_load_most_bfloat16(p, n) >> 16);
}
static inline vf tw_load_most_bfloat16_terms(const unsigned short *p, long n) {
  if (n >= 2 * @LANES@) return tw_load_bfloat16x2((const void *)p);
  vi pairs = (vi)tw_load_first_float32((const void *)p, n / 2);
  vi last = (vi){@LANE_NUMBERS@} == (int)(n / 2);
  return (vf)(n % 2 ? pairs | (last & p[n - 1]) : pairs);
}
static inline vf tw_load_bfloat16_terms(const unsigned short *p) {
  return tw_load_bfloat16x2((const void *)p);
}
"""

_MOST = """\
static inline vf tw_load_most_@D@(const @T@ *p, long n) {
  return n < @LANES@ ? tw_load_first_@D@(p, n) : tw_load_@D@(p);
}
static inline void tw_store_most_@D@(@T@ *p, vf x, long n) {
  if (n < @LANES@) tw_store_first_@D@(p, x, n); else tw_store_@D@(p, x);
}
static inline vf tw_gather_@D@(const @T@ *p, long stride, long n) {
  @T@ x[@LANES@] = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[i * stride];
  return tw_load_@D@(x);
}
"""


def _for_dtype(text: str, dtype: str) -> str:
    """Return ``text`` for one type: D, in C T, a vector of which is packed as Q, in C P."""
    packed = "bfloat16x2" if dtype in ("bfloat16x2", "bfloat16_terms") else "float32"
    names = {"D": dtype, "T": C_TYPES[dtype], "Q": packed, "P": C_TYPES[packed]}
    names["COUNT"] = "2 * @LANES@" if dtype == "bfloat16_terms" else "@LANES@"
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return text


def halves(lanes: int) -> Iterator[str]:
    """Yield the orders of lanes that exchange neighbouring groups: halves of a vector, then
    quarters and so on, down to single lanes."""
    half = lanes // 2
    while half:
        yield ", ".join(str(lane ^ half) for lane in range(lanes))
        half //= 2


def _sum(lanes: int) -> str:
    """Return the C text of ``tw_sum``: log2(lanes) additions of a vector to itself, its lanes
    exchanged."""
    turns = [f"  x += tw_shuffle(x, x, {order});" for order in halves(lanes)]
    return "\n".join(["static inline float tw_sum(vf x) {", *turns, "  return x[0];", "}\n"])


def _transposition(lanes: int, apart: bool = False) -> str:
    """Return the C text of ``tw_transpose_D``, or of ``tw_transpose_apart_D``. Named variables stay
    in registers; arrays do not."""
    names = [f"x{i}" for i in range(lanes)]
    name, given = ("_apart", "const long *at") if apart else ("", "long stride")
    place = "at[{}]" if apart else "{} * stride"
    whole = [f"    {x} = tw_load_@D@(p + {place.format(i)});" for i, x in enumerate(names)]
    part = [f"    {x} = x[{i}];" for i, x in enumerate(names)]
    block = Exchanges(lanes, 4, "vf", "tw_shuffle")
    current = block.transposed(names)
    stores = [f"  tw_store_@Q@(q + {i} * ld, {x});" for i, x in enumerate(current)]
    return "\n".join(
        [
            f"static __attribute__((noinline)) void tw_transpose{name}_@D@(",
            f"    const @T@ *p, {given}, long rows, long columns, @P@ *q, long ld) {{",
            f"  vf {', '.join(names)};",
            "  if (rows >= @LANES@ && columns >= @COUNT@) {",
            *whole,
            "  } else {",
            "    vf x[@LANES@] = {0};",
            "    for (long i = 0; i < rows && i < @LANES@; i++)",
            f"      x[i] = tw_load_most_@D@(p + {place.format('i')}, columns);",
            *part,
            "  }",
            *block.steps,
            *stores,
            "}\n",
        ]
    )

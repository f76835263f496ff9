"""C functions for whole numbers, lanes from scattered places, and stores past the caches.

They complete those of :mod:`spaces.cpu.vectors.simd`:

- ``tw_ramp(start)``: the whole numbers from ``start`` on, one in each lane (``vi``);
  ``tw_numbers(x)``: whole numbers as floats; ``tw_choose(mask, a, b)``: ``a`` in lanes where the
  mask is set and ``b`` elsewhere; ``tw_quotients(x, d)``: quotients, rounded down.
- ``tw_entry(i, below)`` and ``tw_entries(i, below)``: indices from a table, one or a vector,
  clamped so that no access leaves the array.
- For each type D of tables, ``tw_table_D(p, o, n)``: the entries at ``n`` offsets.
- For each type D, ``tw_scattered_D(p, o, n)``: the elements at ``n`` offsets;
  ``tw_stream_D(p, x)``: stores a whole vector, past the caches if ``p`` is aligned to it;
  ``tw_to_line_D(p)``: the elements from there to the next line of 64 bytes;
  ``tw_spread_D(p, stride, x, n)``: stores the first ``n`` lanes, ``stride`` apart.
- ``tw_flush()``: completes the streaming stores.
"""

from __future__ import annotations

from tilewright.spaces.cpu.isa import nontemporal
from tilewright.spaces.cpu.vectors.simd import C_TYPES

TABLE_TYPES = {
    "int32": "int",
    "int8": "signed char",
    "int64": "long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "bool": "unsigned char",
}
"""The C types of tables of indices."""
SMALL = ("int8", "uint8", "bool")
"""The types of whole numbers that kernels of rows and maps read as floats."""


def prelude(isa: str, lanes: int) -> str:
    """Return the C definitions of all of them; they stand behind those of ``simd`` and
    ``vector_math``."""
    text = nontemporal(isa) + _FLOATS + indices(lanes)
    for dtype, (narrowed, vector) in _STORED.items():
        names = {"D": dtype, "T": C_TYPES[dtype], "X": narrowed, "V": vector}
        text += _replaced(_ELEMENTS, **names)
    return text.replace("@LANES@", str(lanes))


def small(lanes: int) -> str:
    """Return the C definitions that load whole numbers of one byte as floats, for each type of
    :data:`SMALL`; they stand behind those of ``simd``."""
    text = "".join(_replaced(_SMALL, D=dtype, T=TABLE_TYPES[dtype]) for dtype in SMALL)
    return _with_lanes(text, lanes)


def numbers(lanes: int) -> str:
    """Return the C definitions for whole numbers alone."""
    return _FLOATS + _with_lanes(_INDICES, lanes)


def indices(lanes: int) -> str:
    """Return the C definitions for indices alone, those of tables included."""
    tables = "".join(
        _replaced(_TABLE, D=d, T=t, X=narrow(d, "p[o[i]]")) for d, t in TABLE_TYPES.items()
    )
    return _with_lanes(_INDICES + _SATURATED + tables, lanes)


def narrow(dtype: str, entry: str) -> str:
    """Return the C text of an entry of a table in 32 bits."""
    return f"tw_saturated({entry})" if dtype == "int64" else entry


def _with_lanes(text: str, lanes: int) -> str:
    return _replaced(text, NUMBERS=", ".join(map(str, range(lanes))), LANES=str(lanes))


def _replaced(text: str, **names: str) -> str:
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return text


_STORED = {"float32": ("x", "vf"), "bfloat16": ("tw_narrow(x)", "vh")}
"""The C text of a vector of floats as it is stored in a type, and the C type of that."""

_FLOATS = """\
static inline vf tw_numbers(vi x) { return __builtin_convertvector(x, vf); }
static inline vf tw_choose(vi mask, vf a, vf b) {
  return (vf)((mask & (vi)a) | (~mask & (vi)b));
}
"""

_INDICES = """\
static inline vi tw_ramp(long start) { return (vi){@NUMBERS@} + (int)start; }
static inline long tw_quotient(long x, long d) { return x / d - (x % d < 0); }
static inline vi tw_quotients(vi x, int d) { return x / d + (x % d < 0); }
static inline long tw_entry(long i, long below) {
  return i < 0 ? 0 : i < below ? i : below - 1;
}
static inline vi tw_entries(vi i, int below) {
  i &= i > 0;
  vi high = i >= below;
  return (i & ~high) | (high & (below - 1));
}
"""

_SATURATED = """\
static inline int tw_saturated(long x) {
  return x < -0x7fffffffL ? -0x7fffffff : x > 0x7fffffffL ? 0x7fffffff : (int)x;
}
"""

_TABLE = """\
static inline vi tw_table_@D@(const @T@ *p, vi o, long n) {
  vi x = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = @X@;
  return x;
}
"""

_SMALL = """\
typedef @T@ tw_vector_@D@ __attribute__((vector_size(@LANES@)));
typedef tw_vector_@D@ tw_vector_any_@D@ __attribute__((aligned(1), may_alias));
static inline vf tw_load_@D@(const @T@ *p) {
  return tw_numbers(__builtin_convertvector(*(const tw_vector_any_@D@ *)p, vi));
}
static inline vf tw_gather_@D@(const @T@ *p, long stride, long n) {
  @T@ x[@LANES@] = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[i * stride];
  return tw_load_@D@(x);
}
static inline vf tw_load_first_@D@(const @T@ *p, long n) { return tw_gather_@D@(p, 1, n); }
static inline vf tw_load_most_@D@(const @T@ *p, long n) {
  return n < @LANES@ ? tw_load_first_@D@(p, n) : tw_load_@D@(p);
}
static inline vf tw_splat_@D@(const @T@ *p) { return tw_broadcast((float)*p); }
"""

_ELEMENTS = """\
static inline vf tw_scattered_@D@(const @T@ *p, vi o, long n) {
  @T@ x[@LANES@] = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[o[i]];
  return tw_load_@D@(x);
}
static inline void tw_stream_@D@(@T@ *p, vf x) {
  if ((unsigned long)p % sizeof(@V@)) tw_store_@D@(p, x);
  else tw_nontemporal_@V@((void *)p, @X@);
}
static inline long tw_to_line_@D@(const @T@ *p) { return (-(unsigned long)p & 63) / sizeof *p; }
static inline void tw_spread_@D@(@T@ *p, long stride, vf x, long n) {
  @T@ y[@LANES@];
  tw_store_@D@(y, x);
  for (long i = 0; i < n && i < @LANES@; i++) p[i * stride] = y[i];
}
"""

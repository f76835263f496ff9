"""Vectors, loads, stores and functions of float64 kernels, under the names of float32 kernels' own.

``vf`` holds ``lanes`` float64 values and ``vi`` as many whole numbers. In memory, elements are
float64 or float32. Functions call the C library, one lane at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.cpu.isa import fma
from tilewright.spaces.cpu.vectors import vector_math
from tilewright.spaces.language.functions import of_library

C_TYPES = {"float64": "double", "float32": "float"}

_LIBRARY = ("exp", "exp2", "log", "tanh", "erf", "erfc", "sqrt", "floor", "fabs")
_SHARED = ("select", "lesser", "greater", "min", "max", "relu")
_OTHERS = {
    "abs": "tw_fabs(x)",
    "float32": "__builtin_convertvector(__builtin_convertvector(x, vs), vf)",
    "rsqrt": "1.0 / tw_sqrt(x)",
    "sigmoid": "1.0 / (1.0 + tw_exp(-x))",
    "silu": "tw_greater(tw_set(-700.0), x) * tw_sigmoid(x)",
    "gelu": "tw_greater(tw_set(-40.0), x) * (0.5 * tw_erfc(x * -0.7071067811865476))",
    "gelu_tanh": (
        "tw_greater(tw_set(-40.0), x) * tw_sigmoid("
        "tw_greater(tw_set(-40.0), x) * 1.5957691216057308 * (1.0 + 0.044715 * x * x))"
    ),
}
FUNCTIONS = frozenset((*_LIBRARY, *_SHARED, *_OTHERS, *(f.name for f in of_library())))
"""The functions that a float64 kernel can call: all but casts to less than float32."""


def prelude(isa: str, lanes: int) -> str:
    """Return the C definitions of all of them."""
    text = _TYPES.replace("@BYTES@", str(8 * lanes))
    text += fma(isa, "float64")
    text += "".join(_ACCESS.replace("@D@", d).replace("@T@", t) for d, t in C_TYPES.items())
    text += "\n".join(vector_math.definitions(_SHARED)) + "\n"
    text += "".join(map(_lanewise, _LIBRARY))
    text += "".join(vector_math.by_library(f, "") for f in of_library())
    text += "".join(f"TW_INLINE vf tw_{n}(vf x) {{ return {v}; }}\n" for n, v in _OTHERS.items())
    return text.replace("@LANES@", str(lanes))


def _lanewise(name: str) -> str:
    return f"""\
TW_INLINE vf tw_{name}(vf x) {{
  vf r;
  for (int i = 0; i < TW_LANES; i++) r[i] = __builtin_{name}(x[i]);
  return r;
}}
"""


def why_no_function(accumulator: str, functions: Iterable[str]) -> str | None:
    """Say which function kernels in the dtype ``accumulator`` lack because it is float64; None if
    they lack none."""
    unknown = sorted(set(functions) - FUNCTIONS) if accumulator == "float64" else []
    return f"{unknown[0]} is no function of float64 kernels" if unknown else None


_TYPES = """\
#define TW_LANES @LANES@
#define TW_INLINE static inline __attribute__((always_inline, unused))
#define TW_UNROLL
#define TW_NUMBER(x) tw_set(x)
#define TW_LARGEST 0x1.fffffffffffffp1023
typedef double vf __attribute__((vector_size(@BYTES@)));
typedef float vs __attribute__((vector_size(@BYTES@ / 2)));
typedef long vi __attribute__((vector_size(@BYTES@)));
#ifdef __clang__
#define tw_shuffle(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define tw_shuffle(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
TW_INLINE vf tw_set(double value) { return value - (vf){0}; }
static inline void tw_flush(void) {}
"""

_ACCESS = """\
static inline vf tw_load_@D@(const @T@ *p) {
  vf x = {0};
  for (int i = 0; i < TW_LANES; i++) x[i] = p[i];
  return x;
}
static inline void tw_store_@D@(@T@ *p, vf x) {
  for (int i = 0; i < TW_LANES; i++) p[i] = x[i];
}
static inline vf tw_splat_@D@(const @T@ *p) { return tw_set(*p); }
static inline vf tw_gather_@D@(const @T@ *p, long stride, long n) {
  vf x = {0};
  for (long i = 0; i < n && i < TW_LANES; i++) x[i] = p[i * stride];
  return x;
}
static inline void tw_spread_@D@(@T@ *p, long stride, vf x, long n) {
  for (long i = 0; i < n && i < TW_LANES; i++) p[i * stride] = x[i];
}
static inline vf tw_load_most_@D@(const @T@ *p, long n) {
  return n < TW_LANES ? tw_gather_@D@(p, 1, n) : tw_load_@D@(p);
}
static inline void tw_store_most_@D@(@T@ *p, vf x, long n) {
  if (n < TW_LANES) tw_spread_@D@(p, 1, x, n); else tw_store_@D@(p, x);
}
static inline void tw_store_first_@D@(@T@ *p, vf x, long n) { tw_spread_@D@(p, 1, x, n); }
static inline void tw_stream_@D@(@T@ *p, vf x) { tw_store_@D@(p, x); }
"""

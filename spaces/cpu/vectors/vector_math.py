"""The functions of programs as C on vectors of floats, for any compiler with ``vector_size``.

They have no branches, so that a register tile goes through them at full vector width. Exceptions
are arguments that :mod:`spaces.cpu.vectors.angles` leaves to C's library, and functions without a
text of their own. Tests hold every function to its bound of :mod:`spaces.language.functions`. The
code relies on ``-fno-math-errno`` and ``-fno-trapping-math`` for speed, and on nothing of one
architecture. Multiply-adds are calls of ``tw_fma``; the bounds hold if it rounds twice as well.

NaN gives NaN, but ``pow(x, 0)`` and ``pow(1, y)`` are 1. Three places fall short of IEEE: ``exp``
and ``exp2`` give zero if the result is below 2**-125.5, ``sigmoid`` and ``silu`` follow them, and
signed zeros are not kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilewright.spaces.cpu.vectors import angles
from tilewright.spaces.cpu.vectors.definitions import Definition, lanewise
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import FUNCTIONS, Function
from tilewright.spaces.language.philox import LARGEST, MULTIPLIERS, ROUNDS, STEPS
from tilewright.spaces.numerics.polynomials import (
    ERF,
    EXP,
    EXP2,
    GELU,
    GELU_END,
    GELU_TANH,
    GELU_TANH_END,
    LOG,
    TANH_BOTTOM,
    TANH_TOP,
    fused_horner,
)


def _odd(name: str, bound: float, t: str, value: str) -> Definition:
    """Return an odd function of x: ``a * value(t)`` for a = |x|, at most one, with the sign of x;
    it is one beyond ``bound``."""
    return Definition(
        f"""\
TW_INLINE vf tw_{name}(vf x) {{
  vf a = tw_lesser(tw_set({bound}f), tw_abs(x));
  vf t = {t};
  vf y = tw_lesser(tw_set(1.0f), a * {value});
  return (vf)((vi)y | ((vi)x & (int)0x80000000));
}}""",
        ("lesser", "abs"),
    )


def _gelu(name: str, end: float, root: tuple[float, ...]) -> Definition:
    return Definition(
        f"""\
TW_INLINE vf tw_{name}(vf x) {{
  vf a = tw_bounded(tw_abs(x), {end}f);
  vf p = {fused_horner(root, "a")};
  p *= p;
  return tw_fma(-a, p * p, tw_relu(x));
}}""",
        ("bounded", "abs", "relu"),
    )


def _extreme(name: str, bare: str) -> Definition:
    return Definition(
        f"TW_INLINE vf tw_{name}(vf a, vf b) {{ return tw_select(b != b, b, tw_{bare}(b, a)); }}",
        (bare, "select"),
    )


_RANDOM = f"""\
TW_INLINE vu tw_word(vf x) {{
  vf y = tw_lesser(tw_set({LARGEST}.0f), tw_greater(tw_set(0.0f), x));
  return (vu)__builtin_convertvector(tw_select(x == x, y, tw_set(0.0f)), vi);
}}
TW_INLINE vu tw_upper_word(unsigned by, vu x) {{
  vu low = x & 0xffffu, high = x >> 16;
  vu a = (by & 0xffffu) * high, b = (by >> 16) * low;
  vu sum = (((by & 0xffffu) * low) >> 16) + (a & 0xffffu) + (b & 0xffffu);
  return (by >> 16) * high + (a >> 16) + (b >> 16) + (sum >> 16);
}}
TW_INLINE vf tw_random(vf s, vf i, vf j) {{
  vu c0 = tw_word(i), c1 = tw_word(j), c2 = {{0}}, c3 = {{0}}, k0 = tw_word(s), k1 = {{0}};
  for (int round = 0; round < {ROUNDS}; round++) {{
    vu upper = tw_upper_word({MULTIPLIERS[0]:#x}u, c0), lower = {MULTIPLIERS[0]:#x}u * c0;
    c0 = tw_upper_word({MULTIPLIERS[1]:#x}u, c2) ^ c1 ^ k0;
    c1 = {MULTIPLIERS[1]:#x}u * c2;
    c2 = upper ^ c3 ^ k1;
    c3 = lower;
    k0 += {STEPS[0]:#x}u;
    k1 += {STEPS[1]:#x}u;
  }}
  vf number = __builtin_convertvector((vi)(c0 >> 8), vf) * 0x1p-24f;
  return tw_select((s == s) & (i == i) & (j == j), number, (s + i) + j);
}}"""
"""The generator of ``spaces.language.philox``; a product's upper word is made of products of
halves."""

_KNOWN = {
    **angles.DEFINITIONS,
    "select": Definition(
        "TW_INLINE vf tw_select(vi mask, vf a, vf b) "
        "{ return (vf)((mask & (vi)a) | (~mask & (vi)b)); }"
    ),
    # Both give b if either is NaN.
    "lesser": Definition(lanewise("lesser(vf a, vf b)", "a[i] < b[i] ? a[i] : b[i]")),
    "greater": Definition(lanewise("greater(vf a, vf b)", "a[i] > b[i] ? a[i] : b[i]")),
    # min(a, end) of numbers that are not negative, which order as their bits do; not for NaN.
    "bounded": Definition(
        """\
TW_INLINE vf tw_bounded(vf a, float end) {
  vi bits = (vi)a, last = (vi)tw_set(end), r;
  TW_UNROLL for (int i = 0; i < TW_LANES; i++) r[i] = bits[i] < last[i] ? bits[i] : last[i];
  return (vf)r;
}"""
    ),
    "min": _extreme("min", "lesser"),
    "max": _extreme("max", "greater"),
    "relu": Definition("TW_INLINE vf tw_relu(vf x) { return (vf)((vi)x & ~(x < 0.0f)); }"),
    "abs": Definition("TW_INLINE vf tw_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }"),
    "sqrt": Definition(lanewise("sqrt(vf x)", "__builtin_sqrtf(x[i])")),
    "rsqrt": Definition("TW_INLINE vf tw_rsqrt(vf x) { return 1.0f / tw_sqrt(x); }", ("sqrt",)),
    # x = n log(2) + f. Adding 1.5 * 2**23 rounds to the whole number n and leaves it in the low
    # bits. The result is 2 exp(f) * 2**(n-1), so that it overflows no sooner than it must.
    "exp": Definition(
        f"""\
TW_INLINE vf tw_exp(vf x) {{
  vf y = tw_lesser(tw_set(89.0f), tw_greater(tw_set(-87.5f), x));
  vf shifted = tw_fma(y, tw_set(1.44269504f), tw_set(12582912.0f));
  vf n = shifted - 12582912.0f;
  vf f = tw_fma(n, tw_set(-0.693359375f), y);
  f = tw_fma(n, tw_set(2.12194440e-4f), f);
  vf p = {fused_horner([2 * c for c in EXP], "f")};
  return p * (vf)(((vu)shifted << 23) + 0x3f000000u);
}}""",
        ("lesser", "greater"),
    ),
    "exp2": Definition(
        f"""\
TW_INLINE vf tw_exp2(vf x) {{
  vf y = tw_lesser(tw_set(128.5f), tw_greater(tw_set(-126.0f), x));
  vf shifted = y + 12582912.0f;
  vf f = y - (shifted - 12582912.0f);
  vf p = {fused_horner([2 * c for c in EXP2], "f")};
  return p * (vf)(((vu)shifted << 23) + 0x3f000000u);
}}""",
        ("lesser", "greater"),
    ),
    # x = 2**n (1 + f), where 0x3f3504f3 are the bits of sqrt(1/2); subnormal numbers are scaled.
    "log": Definition(
        f"""\
TW_INLINE vf tw_log(vf x) {{
  vi small = x < 0x1p-126f;
  vi bits = (vi)((vu)tw_select(small, x * 0x1p24f, x) - 0x3f3504f3u);
  vf f = (vf)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  vf n = __builtin_convertvector((bits >> 23) - (small & 24), vf);
  vf p = {fused_horner(LOG, "f")};
  vf r = tw_fma(f * f, tw_fma(f, p, tw_set(-0.5f)), n * -2.12194440e-4f);
  r = tw_fma(n, tw_set(0.693359375f), r + f);
  r = tw_select(x < __builtin_inff(), r, x);
  vf edge = tw_select(x == 0.0f, tw_set(-__builtin_inff()), tw_set(__builtin_nanf("")));
  return tw_select(x > 0.0f, r, edge);
}}""",
        ("select",),
    ),
    "log1p": Definition(
        """\
TW_INLINE vf tw_log1p(vf x) {
  vf u = x + 1.0f, y = tw_log(u);
  vi edge = (u == 0.0f) | (u == __builtin_inff());
  return tw_select(edge, y, y + (x - (u - 1.0f)) / u);
}""",
        ("log", "select"),
    ),
    # As exp, with exp(f) - 1 in the place of exp(f).
    "expm1": Definition(
        f"""\
TW_INLINE vf tw_expm1(vf x) {{
  vf y = tw_lesser(tw_set(89.0f), tw_greater(tw_set(-87.5f), x));
  vf shifted = tw_fma(y, tw_set(1.44269504f), tw_set(12582912.0f));
  vf n = shifted - 12582912.0f;
  vf f = tw_fma(n, tw_set(-0.693359375f), y);
  f = tw_fma(n, tw_set(2.12194440e-4f), f);
  vf p = tw_fma(f * f, {fused_horner(EXP[2:], "f")}, f);
  vf half = (vf)(((vu)shifted << 23) + 0x3f000000u);
  return 2.0f * tw_fma(p, half, half - 0.5f);
}}""",
        ("lesser", "greater"),
    ),
    "random": Definition(_RANDOM, ("lesser", "greater", "select")),
    "round": Definition(lanewise("round(vf x)", "__builtin_rintf(x[i])")),
    "floor": Definition(lanewise("floor(vf x)", "__builtin_floorf(x[i])")),
    "sigmoid": Definition(
        "TW_INLINE vf tw_sigmoid(vf x) { return 1.0f / (1.0f + tw_exp(-x)); }", ("exp",)
    ),
    "silu": Definition(
        """\
TW_INLINE vf tw_silu(vf x) {
  vf y = tw_greater(tw_set(-100.0f), x);
  return y / (1.0f + tw_exp(-y));
}""",
        ("greater", "exp"),
    ),
    "erf": _odd("erf", 3.85, "tw_fma(a, a, tw_set(-7.41125f))", fused_horner(ERF, "t")),
    "tanh": _odd(
        "tanh", 9.02, "a * a", f"{fused_horner(TANH_TOP, 't')} / {fused_horner(TANH_BOTTOM, 't')}"
    ),
    "gelu": _gelu("gelu", GELU_END, GELU),
    "gelu_tanh": _gelu("gelu_tanh", GELU_TANH_END, GELU_TANH),
    "float32": Definition("TW_INLINE vf tw_float32(vf x) { return x; }"),
    # To nearest, ties to even, on the upper half of the bits; NaN stays NaN.
    "bfloat16": Definition(
        """\
TW_INLINE vf tw_bfloat16(vf x) {
  vu bits = (vu)x;
  vu rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return tw_select(x == x, (vf)(rounded & 0xffff0000u), x);
}""",
        ("select",),
    ),
    # Three ranges: subnormal halves are multiples of 2**-24, which are the floats' own spacing
    # just above 1/2; normal ones lose 13 bits; from 65520 on all is infinite.
    "float16": Definition(
        """\
TW_INLINE vf tw_float16(vf x) {
  vu bits = (vu)x;
  vi sign = (vi)x & (int)0x80000000;
  vf a = tw_abs(x);
  vf normal = (vf)((((vu)a) + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
  vf r = tw_select(a < 0x1p-14f, (a + 0.5f) - 0.5f, normal);
  r = tw_select(a >= 65520.0f, tw_set(__builtin_inff()), r);
  return tw_select(x == x, (vf)((vi)r | sign), x);
}""",
        ("select", "abs"),
    ),
}


def by_library(function: Function, suffix: str = "f") -> str:
    """Return the C text of a function as calls of C's library, one for each lane, by the name that
    ends with ``suffix``."""
    names = ("x", "y")[: function.arity]
    given = ", ".join(f"vf {name}" for name in names)
    lanes = ", ".join(f"{name}[i]" for name in names)
    return lanewise(f"{function.name}({given})", f"__builtin_{function.library}{suffix}({lanes})")


def prelude(functions: Iterable[str], lanes: int, given: Mapping[str, str] | None = None) -> str:
    """Return the C text that defines ``tw_<name>`` for each of ``functions``, which may contain
    ``select``, and all they need.

    The functions take and return ``vf``, a vector of ``lanes`` floats; ``vi`` and ``vu`` are its
    companions of int and unsigned; ``tw_set(float)`` fills a vector. Nothing is included. The texts
    ``given``, by name, replace definitions. Every call is inlined and takes a compiler one to three
    milliseconds: a kernel had better loop over the vectors of its tile than spell out a call for
    each.

    Raises :class:`InputError` for an unknown function.
    """
    functions = sorted(functions)
    for name in functions:
        if name not in (*FUNCTIONS, "select"):
            raise InputError(f"unknown function {name!r}; known: {', '.join(FUNCTIONS)}")
    size = 4 * lanes
    head = f"""\
#define TW_LANES {lanes}
#define TW_INLINE static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define TW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TW_UNROLL
#endif
typedef float vf __attribute__((vector_size({size})));
typedef int vi __attribute__((vector_size({size})));
typedef unsigned vu __attribute__((vector_size({size})));
TW_INLINE vf tw_set(float value) {{ return value - (vf){{0}}; }}"""
    return "\n".join([head, *definitions(functions, given)]) + "\n"


def definitions(names: Iterable[str], given: Mapping[str, str] | None = None) -> list[str]:
    """Return the C text of each function, behind those that it calls; of a ``given`` one, that
    text."""
    needed: dict[str, None] = {}
    for name in names:
        _require(name, needed)
    return [(given or {}).get(name, _definition(name).text) for name in needed]


def _definition(name: str) -> Definition:
    """Return a function's own definition, or else one that calls C's library."""
    return _KNOWN.get(name) or Definition(by_library(FUNCTIONS[name]))


def _require(name: str, needed: dict[str, None]) -> None:
    """Add ``name`` to ``needed`` behind the functions that it calls."""
    for other in _definition(name).calls:
        _require(other, needed)
    needed.setdefault(name)

"""``sin``, ``cos`` and ``pow`` of vectors of floats, whose arguments are reduced in float64.

The definitions are part of :mod:`spaces.cpu.vectors.vector_math`, which has the functions that they
call.
"""

from __future__ import annotations

import math

from tilewright.spaces.cpu.vectors.definitions import Definition
from tilewright.spaces.numerics.polynomials import COS, EXP2, SIN, fused_horner, horner

FAR = 2**20
"""The magnitude up to which ``sin`` and ``cos`` reduce their argument themselves: the number of the
nearest multiple of pi/2 has 20 bits, and its product with the first 33 bits of pi/2 is exact."""
_ATANH = tuple(2 / (math.log(2) * (2 * k + 1)) for k in range(7))


def _periodic(name: str, first: int) -> Definition:
    """Return the definition of ``sin`` or ``cos``: the sine or the cosine of the distance from the
    nearest multiple of pi/2, with the sign that the multiple gives.

    ``first`` is the number of quarters of a period that the function is ahead of the sine. C's
    library computes vectors with numbers beyond :data:`FAR`.
    """
    return Definition(
        f"""\
static __attribute__((noinline, cold, unused)) vf tw_far_{name}(vf x) {{
  for (int i = 0; i < TW_LANES; i++) x[i] = (float)__builtin_{name}(x[i]);
  return x;
}}
TW_INLINE vf tw_{name}(vf x) {{
  vi n, far = tw_abs(x) > {FAR}.0f;
  vf r = tw_quarters(tw_select(far | (x != x), tw_set(0.0f), x), &n), s = r * r;
  vf sine = tw_fma(r * s, {fused_horner(SIN, "s")}, r);
  vf cosine = tw_fma(s * s, {fused_horner(COS, "s")}, tw_fma(s, tw_set(-0.5f), tw_set(1.0f)));
  n += {first};
  vf y = tw_select((n & 1) != 0, cosine, sine);
  y = (vf)((vu)y ^ (((vu)n & 2u) << 30));
  return __builtin_expect(tw_any(far), 0) ? tw_far_{name}(x) : tw_select(x == x, y, x);
}}""",
        ("abs", "select", "any", "quarters"),
    )


DEFINITIONS = {
    "any": Definition(
        """\
TW_INLINE int tw_any(vi mask) {
  int any = 0;
  TW_UNROLL for (int i = 0; i < TW_LANES; i++) any |= mask[i];
  return any;
}"""
    ),
    # Vectors with as many lanes, of twice the bits.
    "doubles": Definition(
        """\
typedef double tw_vd __attribute__((vector_size(8 * TW_LANES)));
typedef long long tw_vl __attribute__((vector_size(8 * TW_LANES)));
TW_INLINE tw_vd tw_select_vd(tw_vl mask, tw_vd a, tw_vd b) {
  return (tw_vd)((mask & (tw_vl)a) | (~mask & (tw_vl)b));
}
TW_INLINE tw_vd tw_set_vd(double value) { return value - (tw_vd){0}; }"""
    ),
    # x = n pi/2 + r in float64, where the first part of pi/2 has 33 bits (fdlibm, e_rem_pio2.c).
    "quarters": Definition(
        """\
TW_INLINE vf tw_quarters(vf x, vi *n) {
  tw_vd y = __builtin_convertvector(x, tw_vd);
  tw_vd k = (y * 0.63661977236758134 + 6755399441055744.0) - 6755399441055744.0;
  *n = __builtin_convertvector(k, vi);
  y = (y - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11;
  return __builtin_convertvector(y, vf);
}""",
        ("doubles",),
    ),
    "sin": _periodic("sin", 0),
    "cos": _periodic("cos", 1),
    # 2**(y log2(a)) of a = |x| = 2**e m in float64, with log2(m) as the series of the inverse
    # hyperbolic tangent of t = (m - 1) / (m + 1): relative error 1.3e-12.
    "pow": Definition(
        f"""\
TW_INLINE vf tw_pow(vf x, vf y) {{
  vf a = tw_abs(x);
  tw_vd w = __builtin_convertvector(a, tw_vd), exponent = __builtin_convertvector(y, tw_vd);
  tw_vl bits = (tw_vl)w - 0x3fe6a09e667f3bcdll;
  tw_vd m = (tw_vd)((bits & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll);
  tw_vd t = (m - 1.0) / (m + 1.0), u = t * t;
  tw_vd l = t * {horner(_ATANH, "u", "")} + __builtin_convertvector(bits >> 52, tw_vd);
  l = tw_select_vd(w == 0.0, tw_set_vd(-__builtin_inf()), l);
  l = tw_select_vd(w == __builtin_inf(), w, l);
  tw_vd z = exponent * l;
  z = tw_select_vd(z > -126.0, z, tw_set_vd(-126.0));
  z = tw_select_vd(z < 128.5, z, tw_set_vd(128.5));
  tw_vd n = (z + 6755399441055744.0) - 6755399441055744.0;
  vf f = __builtin_convertvector(z - n, vf);
  vf r = {fused_horner([2 * c for c in EXP2], "f")};
  r *= (vf)(((vu)__builtin_convertvector(n, vi) << 23) + 0x3f000000u);
  vi whole = tw_round(y) == y, odd = whole & (tw_round(y * 0.5f) != y * 0.5f);
  r = (vf)((vi)r ^ ((x < 0.0f) & odd & (int)0x80000000));
  vi none = ((x < 0.0f) & ~whole & (a < __builtin_inff())) | (x != x) | (y != y);
  vi one = (y == 0.0f) | (x == 1.0f) | ((a == 1.0f) & (tw_abs(y) == __builtin_inff()));
  return tw_select(one, tw_set(1.0f), tw_select(none, tw_set(__builtin_nanf("")), r));
}}""",
        ("doubles", "abs", "round", "select"),
    ),
}
"""The definitions by the names that follow ``tw_``."""

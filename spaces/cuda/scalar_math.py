"""The functions of epilogues as CUDA C++ on one float, for the device and for the host.

The code includes nothing: NVRTC knows the mathematics of CUDA, and a host compiler that runs the
same text includes ``<cmath>`` before it. ``TW_INLINE`` qualifies every function; the code around it
defines it, so that functions are local to their file. The two gelus share the polynomials of the
CPU's: short and without a branch, as 128 accumulators of a thread may go through them. NaN in gives
NaN out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import by_library, of_library
from tilewright.spaces.language.philox import definition
from tilewright.spaces.numerics.polynomials import GELU, GELU_END, GELU_TANH, GELU_TANH_END

CALL_INSTRUCTIONS = 8
"""Instructions of a call of a function, roughly."""
_HEAD = """\
#ifdef __CUDA_ARCH__
TW_INLINE float tw_divide(float a, float b) { return __fdividef(a, b); }
TW_INLINE float tw_inverse_root(float x) { return rsqrtf(x); }
#else
TW_INLINE float tw_divide(float a, float b) { return a / b; }
TW_INLINE float tw_inverse_root(float x) { return 1.0f / sqrtf(x); }
#endif
union tw_bits { float value; unsigned bits; };
"""


def _gelu(name: str, end: float, root: tuple[float, ...]) -> str:
    return f"""\
TW_INLINE float tw_{name}(float x) {{
  float a = fminf(fabsf(x), {end}f);
  float p = {_horner(root, "a")};
  p *= p;
  return fmaf(-a, p * p, x < 0.0f ? 0.0f : x);
}}"""


def _horner(coefficients: Sequence[float], variable: str) -> str:
    """Return C text of a polynomial by Horner's rule, a multiply-add for each coefficient but
    one."""
    *others, highest = coefficients
    text = f"{highest!r}f"
    for coefficient in reversed(others):
        text = f"fmaf({text}, {variable}, {coefficient!r}f)"
    return text


_DEFINITIONS = {
    "exp": "TW_INLINE float tw_exp(float x) { return expf(x); }",
    "exp2": "TW_INLINE float tw_exp2(float x) { return exp2f(x); }",
    "log": "TW_INLINE float tw_log(float x) { return logf(x); }",
    "floor": "TW_INLINE float tw_floor(float x) { return floorf(x); }",
    "tanh": "TW_INLINE float tw_tanh(float x) { return tanhf(x); }",
    "erf": "TW_INLINE float tw_erf(float x) { return erff(x); }",
    "sigmoid": ("TW_INLINE float tw_sigmoid(float x) { return tw_divide(1.0f, 1.0f + expf(-x)); }"),
    "relu": "TW_INLINE float tw_relu(float x) { return x < 0.0f ? 0.0f : x; }",
    "gelu": _gelu("gelu", GELU_END, GELU),
    "gelu_tanh": _gelu("gelu_tanh", GELU_TANH_END, GELU_TANH),
    "silu": """\
TW_INLINE float tw_silu(float x) {
  float y = x < -100.0f ? -100.0f : x;
  return tw_divide(y, 1.0f + expf(-y));
}""",
    "min": "TW_INLINE float tw_min(float a, float b) { return a < b || a != a ? a : b; }",
    "max": "TW_INLINE float tw_max(float a, float b) { return a > b || a != a ? a : b; }",
    "sqrt": "TW_INLINE float tw_sqrt(float x) { return sqrtf(x); }",
    "rsqrt": "TW_INLINE float tw_rsqrt(float x) { return tw_inverse_root(x); }",
    "abs": "TW_INLINE float tw_abs(float x) { return fabsf(x); }",
    # To nearest, ties to even, on the upper half of the bits.
    "bfloat16": """\
TW_INLINE float tw_bfloat16(float x) {
  tw_bits v = {x};
  v.bits = (v.bits + 0x7fffu + ((v.bits >> 16) & 1u)) & 0xffff0000u;
  return x == x ? v.value : x;
}""",
    # Subnormal halves are multiples of 2**-24, the floats' own spacing just above 1/2; normal
    # ones lose 13 bits; from 65520 on all is infinite.
    "float16": """\
TW_INLINE float tw_float16(float x) {
  float a = fabsf(x);
  tw_bits v = {a};
  v.bits = (v.bits + 0xfffu + ((v.bits >> 13) & 1u)) & 0xffffe000u;
  if (a < 6.103515625e-5f) v.value = (a + 0.5f) - 0.5f;
  if (a >= 65520.0f) v.bits = 0x7f800000u;
  return x == x ? copysignf(v.value, x) : x;
}""",
    "float32": "TW_INLINE float tw_float32(float x) { return x; }",
}


_BY_UNIT = {
    "exp": "TW_INLINE float tw_exp(float x) { return tw::exp2_approx(x * 1.44269504f); }",
    "exp2": "TW_INLINE float tw_exp2(float x) { return tw::exp2_approx(x); }",
}
"""Powers by the special function unit, a third of the instructions.

The error of 2**y is 6e-8 * y of its value, which no result of 16 bits shows.
"""

ALWAYS = tuple(_DEFINITIONS)
"""Functions and casts with a text of their own, which kernels of any program define."""
_DEFINITIONS |= {
    f.name: f"TW_INLINE {by_library(f, 'float', f'tw_{f.name}', f'{f.library}f').rstrip()}"
    for f in of_library()
} | {"random": definition("TW_INLINE", "float", "tw_random").rstrip()}
FUNCTIONS = tuple(_DEFINITIONS)
"""Names of all functions and casts.

Those of CUDA's library are its accurate ones: the error of ``sinf`` is at most 2 units in the last
place, however large its argument is.
"""


def prelude(functions: Iterable[str], by_unit: bool = False) -> str:
    """Return CUDA C++ text that defines ``tw_<name>`` for each of ``functions``, on ``float``.

    ``by_unit`` asks for powers by the special function unit, an intrinsic. Raises
    :class:`InputError` for a function that is not known.
    """
    names = sorted(set(functions))
    for name in names:
        if name not in _DEFINITIONS:
            raise InputError(f"unknown function {name!r}; known: {', '.join(_DEFINITIONS)}")
    known = _DEFINITIONS | (_BY_UNIT if by_unit else {})
    return _HEAD + "\n".join(known[name] for name in names) + "\n" if names else ""

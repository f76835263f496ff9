"""Functions of one number that kernels of loops call, as C that is CUDA C++ too.

``tw_real_...`` take and give float64, ``tw_whole_...`` whole numbers of 64 bits; these wrap around,
and a quotient or remainder by zero is zero, as NumPy has it. Numbers of 16 and 8 bits are decoded
and encoded by arithmetic alone, so that every target has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.functions import by_library, of_library
from tilewright.spaces.language.philox import definition


@dataclass(frozen=True)
class Format:
    """A floating-point dtype of 16 or 8 bits: its bits of fraction and exponent, and the bits of
    the greatest finite number. What is beyond becomes infinite, or that number if it
    ``saturates``."""

    fraction: int
    exponent: int
    largest: int
    saturates: bool = False

    def decoded(self, bits: str) -> str:
        """C expression: the number of these bits."""
        return f"tw_real_decoded({bits}, {self.fraction}, {self.exponent}, {self.largest})"

    def encoded(self, number: str) -> str:
        """C expression: the bits of the nearest number, of ties the even one."""
        given = (self.fraction, self.exponent, self.largest, int(self.saturates))
        return f"tw_real_encoded({number}, {', '.join(map(str, given))})"


FORMATS = {
    "float16": Format(10, 5, 0x7BFF),
    "bfloat16": Format(7, 8, 0x7F7F),
    "float8_e4m3fn": Format(3, 4, 0x7E, saturates=True),
    "float8_e5m2": Format(2, 5, 0x7B, saturates=True),
}
"""The dtypes that are neither C's nor whole numbers."""


def written(number: str, whole: bool, name: str) -> str:
    """C expression: a number as an element of a dtype; its bits, of those in :data:`FORMATS`."""
    if name in FORMATS:
        return FORMATS[name].encoded(f"(double)({number})" if whole else number)
    if not dtype(name).is_integer:
        return f"({'double' if name == 'float64' else 'float'})({number})"
    if whole and name == "int64":
        return number
    least, most = dtype(name).limits
    lowest = f"{least + 1} - 1" if name == "int64" else str(least)  # C has no literal for it
    return f"tw_{'whole' if whole else 'real'}_clipped({number}, {lowest}, {most})"


def definitions(function: str, library: str, infinity: str) -> str:
    """C definitions of all functions but those of :func:`library_definitions`. ``function`` stands
    before each, ``library`` before names of C's library, and ``infinity`` is an expression."""
    text = _TEXT.replace("@FUNCTION@", function).replace("@INFINITY@", infinity)
    return text.replace("@LIBRARY@", library)


def library_definitions(function: str, library: str) -> dict[str, str]:
    """C definitions of the functions that C's library has, and of random numbers, by their
    names."""
    return {"random": definition(function, "double", "tw_real_random")} | {
        f.name: f"{function} {by_library(f, 'double', f'tw_real_{f.name}', library + f.library)}"
        for f in of_library()
    }


_TEXT = """\
union tw_real_bits { double value; u64 bits; };
@FUNCTION@ double tw_real_exp(double x) { return @LIBRARY@exp(x); }
@FUNCTION@ double tw_real_exp2(double x) { return @LIBRARY@exp2(x); }
@FUNCTION@ double tw_real_log(double x) { return @LIBRARY@log(x); }
@FUNCTION@ double tw_real_tanh(double x) { return @LIBRARY@tanh(x); }
@FUNCTION@ double tw_real_erf(double x) { return @LIBRARY@erf(x); }
@FUNCTION@ double tw_real_sqrt(double x) { return @LIBRARY@sqrt(x); }
@FUNCTION@ double tw_real_rsqrt(double x) { return 1.0 / @LIBRARY@sqrt(x); }
@FUNCTION@ double tw_real_floor(double x) { return @LIBRARY@floor(x); }
@FUNCTION@ double tw_real_abs(double x) { return @LIBRARY@fabs(x); }
@FUNCTION@ double tw_real_min(double a, double b) { return a < b || a != a ? a : b; }
@FUNCTION@ double tw_real_max(double a, double b) { return a > b || a != a ? a : b; }
@FUNCTION@ double tw_real_relu(double x) { return x < 0.0 ? 0.0 : x; }
@FUNCTION@ double tw_real_sigmoid(double x) { return 1.0 / (1.0 + @LIBRARY@exp(-x)); }
@FUNCTION@ double tw_real_silu(double x) {
  return tw_real_max(x, -800.0) * tw_real_sigmoid(x);
}
@FUNCTION@ double tw_real_gelu(double x) {
  return tw_real_max(x, -40.0) * (0.5 * @LIBRARY@erfc(x * -0.7071067811865476));
}
@FUNCTION@ double tw_real_gelu_tanh(double x) {
  const double y = tw_real_max(x, -40.0);
  return y * tw_real_sigmoid(1.5957691216057308 * (y + 0.044715 * (y * y * y)));
}
@FUNCTION@ double tw_real_remainder(double a, double b) {
  const double r = @LIBRARY@fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
@FUNCTION@ double tw_real_quotient(double a, double b) {
  return b == 0.0 ? a / b : @LIBRARY@rint((a - tw_real_remainder(a, b)) / b);
}
@FUNCTION@ double tw_real_of_bits(u64 bits) {
  union tw_real_bits x;
  x.bits = bits;
  return x.value;
}
@FUNCTION@ u64 tw_bits_of_real(double value) {
  union tw_real_bits x;
  x.value = value;
  return x.bits;
}
@FUNCTION@ double tw_real_decoded(unsigned bits, int fraction, int exponent, unsigned largest) {
  const unsigned size = bits & ((1u << (fraction + exponent)) - 1), field = size >> fraction;
  const u64 low = size & ((1u << fraction) - 1);
  const int zero = 1024 - (1 << (exponent - 1));
  double x = tw_real_of_bits((u64)(field + zero) << 52 | low << (52 - fraction));
  if (field == 0) x = (double)low * tw_real_of_bits((u64)(zero + 1 - fraction) << 52);
  if (size > largest) x = size == largest + 1 && exponent != 4 ? @INFINITY@ : @INFINITY@ * 0.0;
  return tw_real_of_bits(tw_bits_of_real(x) ^ (u64)(bits >> (fraction + exponent) & 1) << 63);
}
@FUNCTION@ unsigned tw_real_encoded(
    double number, int fraction, int exponent, unsigned largest, int saturates) {
  const double x = (double)(float)number;
  const u64 bits = tw_bits_of_real(x) & ~((u64)1 << 63), hidden = (u64)1 << 52;
  const int least = 2 - (1 << (exponent - 1)), power = (int)(bits >> 52) - 1023;
  const int above = power > least ? power - least : 0;
  const int shift = 52 - fraction + (power < least ? least - power : 0);
  const u64 digits = (bits & (hidden - 1)) | hidden;
  unsigned size = 0;
  if (x != x) return (1u << (fraction + exponent)) - 1;
  if (shift < 54) {
    const u64 rest = digits & (((u64)1 << shift) - 1), half = (u64)1 << (shift - 1);
    const unsigned down = (unsigned)(digits >> shift);
    const unsigned up = (unsigned)(rest > half) | ((unsigned)(rest == half) & down);
    size = ((unsigned)above << fraction) + down + (up & 1);
  }
  if (size > largest) size = saturates ? largest : largest + 1;
  return (unsigned)(x < 0.0) << (fraction + exponent) | size;
}
@FUNCTION@ double tw_real_float16(double x) {
  return tw_real_decoded(tw_real_encoded(x, 10, 5, 0x7bff, 0), 10, 5, 0x7bff);
}
@FUNCTION@ double tw_real_bfloat16(double x) {
  return tw_real_decoded(tw_real_encoded(x, 7, 8, 0x7f7f, 0), 7, 8, 0x7f7f);
}
@FUNCTION@ double tw_real_float32(double x) { return (double)(float)x; }
@FUNCTION@ i64 tw_real_clipped(double x, i64 least, i64 most) {
  const double y = @LIBRARY@rint(x);
  return y >= (double)most ? most : y > (double)least ? (i64)y : x != x ? 0 : least;
}
@FUNCTION@ void tw_real_add(double *sum, double *lost, double x) {
  const double whole = *sum + x;
  *lost += @LIBRARY@fabs(*sum) >= @LIBRARY@fabs(x) ? (*sum - whole) + x : (x - whole) + *sum;
  *sum = whole;
}
@FUNCTION@ double tw_real_total(double sum, double lost) {
  return lost - lost == 0.0 ? sum + lost : sum;
}
@FUNCTION@ int tw_real_above(double a, double b) { return a > b || (a != a && b == b); }
@FUNCTION@ int tw_real_below(double a, double b) { return a < b || (a != a && b == b); }
@FUNCTION@ int tw_whole_above(i64 a, i64 b) { return a > b; }
@FUNCTION@ int tw_whole_below(i64 a, i64 b) { return a < b; }
@FUNCTION@ i64 tw_whole_plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
@FUNCTION@ i64 tw_whole_minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
@FUNCTION@ i64 tw_whole_times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
@FUNCTION@ i64 tw_whole_min(i64 a, i64 b) { return a < b ? a : b; }
@FUNCTION@ i64 tw_whole_max(i64 a, i64 b) { return a > b ? a : b; }
@FUNCTION@ i64 tw_whole_relu(i64 x) { return x < 0 ? 0 : x; }
@FUNCTION@ i64 tw_whole_abs(i64 x) { return x < 0 ? tw_whole_minus(0, x) : x; }
@FUNCTION@ i64 tw_whole_floor(i64 x) { return x; }
@FUNCTION@ i64 tw_whole_remainder(i64 a, i64 b) {
  if (b == 0 || b == -1) return 0;
  const i64 r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
@FUNCTION@ i64 tw_whole_quotient(i64 a, i64 b) {
  if (b == 0) return 0;
  if (b == -1) return tw_whole_minus(0, a);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
@FUNCTION@ i64 tw_whole_clipped(i64 x, i64 least, i64 most) {
  return x < least ? least : x > most ? most : x;
}
@FUNCTION@ i64 tw_whole_within(i64 x, i64 extent) {
  return x < 0 ? 0 : x < extent ? x : extent - 1;
}
@FUNCTION@ int tw_whole_inside(i64 x, i64 extent) { return x >= 0 && x < extent; }
"""

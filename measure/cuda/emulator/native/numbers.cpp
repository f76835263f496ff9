// Narrow number formats: conversions that round as the device does.
#include "machine.h"

namespace tw::emulator {

namespace {

u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
float float_of(u32 x) { return __builtin_bit_cast(float, x); }

// Rounds to a float with `mantissa` explicit bits whose smallest exponent of a normal is `least`;
// to nearest, ties to even. Exact, since the scaled value is rounded by the hardware.
float rounded(float x, int mantissa, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent;
  std::frexp(x, &exponent);  // |x| in [2^(exponent - 1), 2^exponent)
  const int unit = std::max(exponent - 1, least) - mantissa;
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

// Encodes a value that the format holds exactly; below 2^least it is subnormal.
u32 encoded(float x, int mantissa, int least, int bias) {
  const float magnitude = std::fabs(x);
  if (magnitude == 0) return 0;
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent--;
  if (exponent < least) return (u32)std::ldexp(magnitude, mantissa - least);
  const u32 fraction = (u32)std::ldexp(magnitude, mantissa - exponent) - (1u << mantissa);
  return (u32)(exponent + bias) << mantissa | fraction;
}

u8 float8(float x, int mantissa, int least, int bias, float largest, u8 nan) {
  if (std::isnan(x)) return nan;
  const u8 sign = std::signbit(x) ? 0x80 : 0;
  float value = std::fabs(rounded(x, mantissa, least));
  if (value > largest) value = largest;  // .satfinite
  return sign | (u8)encoded(value, mantissa, least, bias);
}

}  // namespace

float f16_to_float(u16 bits) {
  const u32 sign = (u32)(bits & 0x8000) << 16;
  if ((bits & 0x7c00) == 0x7c00) return float_of(sign | 0x7f800000 | (u32)(bits & 0x3ff) << 13);
  return float_of(sign | bits_of(float_of((u32)(bits & 0x7fff) << 13) * 0x1p112f));
}

float e4m3_to_float(u8 bits) {
  const u32 sign = (u32)(bits & 0x80) << 24;
  if ((bits & 0x7f) == 0x7f) return float_of(sign | 0x7fc00000);
  return float_of(sign | bits_of(float_of((u32)(bits & 0x7f) << 20) * 0x1p120f));
}

u16 float_to_f16(float x) {
  if (std::isnan(x)) return 0x7fff;
  const u16 sign = std::signbit(x) ? 0x8000 : 0;
  const float value = std::fabs(rounded(x, 10, -14));
  return sign | (value > 65504 ? 0x7c00 : (u16)encoded(value, 10, -14, 15));
}

u16 float_to_bf16(float x) {
  if (std::isnan(x)) return 0x7fff;
  const u32 bits = bits_of(x);
  return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

u8 float_to_e4m3(float x) { return float8(x, 3, -6, 7, 448, 0x7f); }
u8 float_to_e5m2(float x) { return float8(x, 2, -14, 15, 57344, 0x7f); }

u32 float_to_tf32(float x) {  // to nearest, ties away from zero
  return std::isfinite(x) ? (bits_of(x) + 0x1000) & ~0x1fffu : bits_of(x);
}

i32 float_to_integer(float x, i32 low, i32 high) {
  if (std::isnan(x)) return 0;
  const double nearest = std::nearbyint((double)x);
  return nearest < low ? low : nearest > high ? high : (i32)nearest;
}

}  // namespace tw::emulator

/* Every element of an output against the least and greatest value allowed, as
   spaces/numerics/allowance.py has them: NaN where both are NaN, anything where they are infinite. */
#include "compare.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float widened(uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static inline double element(const comparison *c, const void *output, long i) {
  switch (c->kind) {
    case COMPARE_FLOAT64: return ((const double *)output)[i];
    case COMPARE_FLOAT32: return ((const float *)output)[i];
    case COMPARE_INT32: return ((const int32_t *)output)[i];
    case COMPARE_INT64: return (double)((const int64_t *)output)[i];
    case COMPARE_BFLOAT16: return widened(((const uint16_t *)output)[i]);
    case COMPARE_TABLE16: return c->table[((const uint16_t *)output)[i]];
    default: return c->table[((const uint8_t *)output)[i]];
  }
}

static inline double bound(const comparison *c, const void *ends, long i) {
  int wide = c->kind == COMPARE_FLOAT64 || c->kind == COMPARE_INT32 || c->kind == COMPARE_INT64;
  return wide ? ((const double *)ends)[i] : ((const float *)ends)[i];
}

/* Distance to the nearest value allowed: 0 for one that is, infinite where NaN is wrong or due. */
static inline double distance(double got, double low, double high) {
  if ((got >= low && got <= high) || (low == -INFINITY && high == INFINITY)) return 0;
  if (isnan(got) || isnan(low)) return isnan(got) && isnan(low) ? 0 : INFINITY;
  return got < low ? low - got : got - high;
}

/* Loops that compilers turn into vector code; NaN and infinities are looked at again. */
static int any_outside_float32(const comparison *c, const float *output) {
  const float *low = c->low, *high = c->high;
  int outside = 0;
  for (long i = 0; i < c->count; i++) outside |= !((output[i] >= low[i]) & (output[i] <= high[i]));
  return outside;
}

static int any_outside_bfloat16(const comparison *c, const uint16_t *output) {
  const float *low = c->low, *high = c->high;
  int outside = 0;
  for (long i = 0; i < c->count; i++) {
    float got = widened(output[i]);
    outside |= !((got >= low[i]) & (got <= high[i]));
  }
  return outside;
}

discrepancy compare(const comparison *c, const void *output) {
  discrepancy worst = {0};
  double most = 0;
  if (c->kind == COMPARE_FLOAT32 && !any_outside_float32(c, output)) return worst;
  if (c->kind == COMPARE_BFLOAT16 && !any_outside_bfloat16(c, output)) return worst;
  for (long i = 0; i < c->count; i++) {
    double got = element(c, output, i), low = bound(c, c->low, i), high = bound(c, c->high, i);
    double far = distance(got, low, high);
    if (far == 0) continue;
    if (worst.wrong++ && far <= most) continue;
    most = far;
    worst.index = i;
    worst.got = got;
    worst.low = low;
    worst.high = high;
  }
  return worst;
}

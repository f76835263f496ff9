/* Every element of an output against the float64 reference: |got - expected| within
   absolute + relative * |expected|. */
#include "compare.h"

#include <math.h>
#include <stdint.h>

static inline double element(const comparison *c, const void *output, long i) {
  switch (c->kind) {
    case COMPARE_FLOAT64: return ((const double *)output)[i];
    case COMPARE_FLOAT32: return ((const float *)output)[i];
    case COMPARE_INT32: return ((const int32_t *)output)[i];
    case COMPARE_TABLE16: return c->table[((const uint16_t *)output)[i]];
    default: return c->table[((const uint8_t *)output)[i]];
  }
}

/* Error over what is allowed; above 1 is wrong, and so is NaN. Equal infinities agree. */
static inline double excess(const comparison *c, double got, double expected) {
  if (got == expected) return 0;
  return fabs(got - expected) / (c->absolute + c->relative * fabs(expected));
}

static long count_wrong_float32(const comparison *c, const float *output) {
  long wrong = 0;
  for (long i = 0; i < c->count; i++) {
    double expected = c->expected[i], got = output[i];
    double allowed = c->absolute + c->relative * fabs(expected);
    wrong += !(fabs(got - expected) <= allowed);
  }
  return wrong;
}

discrepancy compare(const comparison *c, const void *output) {
  discrepancy worst = {0, 0, 0};
  double most = 0;
  if (c->kind == COMPARE_FLOAT32 && !count_wrong_float32(c, output)) return worst;
  for (long i = 0; i < c->count; i++) {
    double got = element(c, output, i), over = excess(c, got, c->expected[i]);
    if (over <= 1) continue;
    if (isnan(over)) over = INFINITY;
    if (!worst.wrong++ || over > most) {
      most = over;
      worst.index = i;
      worst.got = got;
    }
  }
  return worst;
}

/* Every element of an output against the float64 reference. See compare.c. */
#ifndef TW_COMPARE_H
#define TW_COMPARE_H

typedef enum {
  COMPARE_FLOAT64,
  COMPARE_FLOAT32,
  COMPARE_INT32,
  COMPARE_TABLE16,
  COMPARE_TABLE8
} compare_kind;

typedef struct {
  compare_kind kind;
  long count;
  const double *expected;
  const double *table; /* value of each bit pattern of 1- and 2-byte types */
  double relative, absolute;
} comparison;

typedef struct {
  long wrong; /* number of elements outside the tolerance; NaN always is */
  long index; /* the worst of them, in memory order */
  double got;
} discrepancy;

discrepancy compare(const comparison *c, const void *output);

#endif

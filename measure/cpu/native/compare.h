/* Every element of an output against the least and greatest value allowed. See compare.c. */
#ifndef TW_COMPARE_H
#define TW_COMPARE_H

typedef enum {
  COMPARE_FLOAT64,
  COMPARE_FLOAT32,
  COMPARE_INT32,
  COMPARE_TABLE16,
  COMPARE_TABLE8,
  COMPARE_BFLOAT16,
  COMPARE_INT64
} compare_kind;

typedef struct {
  compare_kind kind;
  long count;
  const void *low, *high; /* doubles for float64 and integers of 32 bits and more, floats for all other kinds */
  const double *table;    /* value of each bit pattern of 1- and 2-byte types */
} comparison;

typedef struct {
  long wrong; /* number of elements that are not as allowed */
  long index; /* the worst of them, in memory order */
  double got, low, high;
} discrepancy;

discrepancy compare(const comparison *c, const void *output);

#endif

/* See protocol.h. */
#include "protocol.h"

#include <math.h>
#include <stdlib.h>

static const double LONG_CALL = 10;       /* samples' least times, that a checked call spans */
static const double LEAST_CALL = 1e-8;    /* seconds */
static const double MOST_CALLS = 1e6;
static const double BUSY_FACTOR = 4;      /* times its limit that a starved process is waited for */
static const double CLOCK_SLACK = 1e-3;   /* by which two clocks may disagree */
static const double ANSWER_SLACK = 5e-3;  /* that a process may take to answer ... */
static const double COLD_FACTOR = 10;     /* ... and how much slower an untimed call may be */

int wants_second_call(const protocol *p, double first) { return first <= p->recheck_seconds; }

int is_slow(const protocol *p, double best, int calls, const double *seconds) {
  double slow = p->slow_factor * best;
  return calls == 1 ? seconds[0] > slow + p->cold_seconds : fmin(seconds[0], seconds[1]) > slow;
}

int is_sample(const protocol *p, double seconds) {
  return seconds >= LONG_CALL * p->sample_seconds;
}

int calls_of_sample(const protocol *p, const tally *t) {
  double calls = ceil(p->sample_seconds / fmax(t->fastest, LEAST_CALL));
  return (int)fmin(fmax(calls, 1), MOST_CALLS);
}

int wants_sample(const protocol *p, const tally *t, double best) {
  if (t->samples >= p->samples) return 0;
  if (!t->samples || t->spent + fmax(t->fastest, p->sample_seconds) <= p->budget) return 1;
  return t->samples < p->contender_samples && t->fastest <= p->contender_factor * best;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int is_disturbed(const protocol *p, references *r, double seconds) {
  if (r->count < MAX_REFERENCES) r->sorted[r->count++] = seconds;
  qsort(r->sorted, r->count, sizeof *r->sorted, by_value);
  return seconds > (1 + p->drift) * r->sorted[r->count / 2];
}

int is_hung(double limit, double wall, double cpu) {
  return wall >= limit && (cpu >= limit / 2 || wall >= BUSY_FACTOR * limit);
}

int is_believable(int wall, double claimed, double untimed, double seen) {
  if (!isfinite(claimed) || claimed <= 0 || claimed > seen + CLOCK_SLACK) return 0;
  return wall || COLD_FACTOR * (claimed + untimed) + ANSWER_SLACK >= seen;
}

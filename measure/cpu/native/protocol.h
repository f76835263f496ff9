/* The decisions of the timing protocol, on given times: nothing here calls or times a kernel. The
   numbers are those of measure/timing.py, which says what they are for. Times in seconds. */
#ifndef TW_PROTOCOL_H
#define TW_PROTOCOL_H

enum { MAX_REFERENCES = 4096 };

typedef struct {
  double slow_factor, cold_seconds, recheck_seconds, sample_seconds, budget;
  int samples;
  double contender_factor;
  int contender_samples;
  double drift;
} protocol;

/* What is known of one candidate's times. */
typedef struct {
  int samples;
  double fastest; /* of all its calls; infinity before any */
  double spent;   /* on sampling */
} tally;

/* The times of the reference kernel so far. */
typedef struct {
  int count;
  double sorted[MAX_REFERENCES];
} references;

/* Whether a first checked call is followed by a second one. */
int wants_second_call(const protocol *p, double first);

/* Whether a candidate is far slower than `best` by its one or two checked calls. */
int is_slow(const protocol *p, double best, int calls, const double *seconds);

/* Whether a checked call counts as a sample: a cold start does not show in it. */
int is_sample(const protocol *p, double seconds);

/* How many calls its next sample spans. */
int calls_of_sample(const protocol *p, const tally *t);

/* Whether it is sampled once more. */
int wants_sample(const protocol *p, const tally *t, double best);

/* Notes a time of the reference kernel; whether it is far above the median of all. */
int is_disturbed(const protocol *p, references *r, double seconds);

/* Whether a process that was to answer within `limit` hangs, after `wall` seconds in which it had
   `cpu` seconds of a processor. On a busy machine it gets more time. */
int is_hung(double limit, double wall, double cpu);

/* Whether the process of a candidate can have spent `claimed` on the calls of one answer, with
   `untimed` beside it, when it was seen to take `seen`: by the wall clock, or else CPU time. */
int is_believable(int wall, double claimed, double untimed, double seen);

#endif

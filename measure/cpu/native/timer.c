#define _GNU_SOURCE
#include "timer.h"

#include <math.h>
#include <time.h>

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

double wall_seconds(void) { return seconds(CLOCK_MONOTONIC); }

double clock_seconds(int wall) {
  return seconds(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

double cpu_seconds_of(pid_t process) {
  clockid_t clock;
  struct timespec t;
  if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &t)) return INFINITY;
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Multiplies and adds in registers: some 200 microseconds that only the core's speed decides. */
double reference_seconds(int wall) {
  typedef float lanes __attribute__((vector_size(16)));
  lanes a = {1, 2, 3, 4}, b = a + 1, c = a + 2, d = a + 3;
  const lanes scale = {0.9999f, 0.9998f, 0.9997f, 0.9996f};
  double start = clock_seconds(wall);
  for (int i = 0; i < 100000; i++) {
    a = a * scale + scale;
    b = b * scale + scale;
    c = c * scale + scale;
    d = d * scale + scale;
  }
  volatile lanes result = a + b + c + d;
  (void)result;
  return clock_seconds(wall) - start;
}

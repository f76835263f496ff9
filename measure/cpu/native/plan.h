/* What a server is asked to measure. Read from standard input, see plan.c. */
#ifndef TW_PLAN_H
#define TW_PLAN_H

#include <sys/types.h>

#include "compare.h"
#include "protocol.h"
#include "zone.h"

enum { MAX_THREADS = 1024, MAX_CANDIDATES = 256, MAX_RIVALS = 4, MAX_TEXT = 4096 };

typedef struct {
  char path[MAX_TEXT]; /* of the shared object */
  char entry[256];
  size_t workspace_bytes, workspace_zeroed; /* all of it, and how much starts as zeros */
} candidate;

/* A process of the runner's that times a library by orders as child.h has them. */
typedef struct {
  pid_t process;
  int channel;
} rival;

typedef struct {
  char name[64];
  size_t bytes;
  unsigned poison; /* 16 bits it is filled with before a checked call */
  comparison comparison;
} output;

typedef struct {
  int threads, wall;      /* threads of a kernel; whether time is wall time or thread CPU time */
  int cpu[MAX_THREADS];   /* of each thread, if there are several */
  double limit;           /* seconds a call may take before its process is killed */
  size_t memory;          /* bytes a candidate may allocate beyond its buffers */
  size_t flush_bytes;     /* written to flush_memory before each timed call; or 0 */
  char *flush_memory;
  double best;            /* latency to beat, infinity if unknown */
  protocol timing;
  unsigned long seed;

  int inputs;
  zone *input;
  char (*input_name)[64];
  int outputs;
  output *output;

  int candidates;
  candidate *candidate;
  int rivals;
  rival rival[MAX_RIVALS];
} plan;

/* Reads the plan; inputs are copied into sealed zones. NULL, or what is wrong. */
const char *plan_read(plan *p);

#endif

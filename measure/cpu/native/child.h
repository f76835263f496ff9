/* The process in which one candidate runs. See child.c. */
#ifndef TW_CHILD_H
#define TW_CHILD_H

#include "plan.h"

typedef enum { REPLY_OK, REPLY_SLOW, REPLY_ERROR } reply_kind;

typedef struct {
  unsigned token; /* of the order that this answers */
  reply_kind kind;
  int calls;             /* checked calls made: 1 or 2 */
  double seconds[2];     /* their times, or that of one call as ordered */
  char error[24];        /* kind of error, as ErrorKind of measure.records.measurement spells it */
  char text[512];
} reply;

typedef struct {
  unsigned token;
  int warm, calls; /* untimed calls, then timed ones; without any, the last output is checked */
} order;

/* Checks the candidate and answers with `token`, then takes orders for samples until the channel
   closes. Does not return. */
void child_main(const plan *p, const candidate *c, int channel, unsigned token);

#endif

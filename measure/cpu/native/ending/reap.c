/* See reap.h. The kernel lists the children of a thread; those of a process that was forked by one
   thread only, as ours are, are all there. A child in an uninterruptible wait cannot be killed, so
   nothing here waits for ever. */
#define _GNU_SOURCE
#include "reap.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, ROUND_NANOSECONDS = 10 * 1000 * 1000 };

void adopt_orphans(void) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

static int kill_children(int (*spared)(pid_t)) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *list = fopen(path, "r");
  if (!list) return 0;
  int child, count = 0;
  while (fscanf(list, "%d", &child) == 1) {
    if (spared && spared(child)) continue;
    count++;
    kill(child, SIGKILL);
    waitpid(child, NULL, WNOHANG);
  }
  fclose(list);
  return count;
}

int end_children(int (*spared)(pid_t)) {
  int count = kill_children(spared);
  for (int round = 1; count && round < ROUNDS; round++) {
    if (round > 1) nanosleep(&(struct timespec){0, ROUND_NANOSECONDS}, NULL);
    count = kill_children(spared);
  }
  return count;
}

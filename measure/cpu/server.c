/* Measures one batch of candidates: reads a plan (plan.c) and writes one line per event.

     refused TEXT        nothing can be measured     ready            the candidates' turn begins
     error I KIND TEXT   candidate I failed          slow I SECONDS   cut short after this call
     lost I KIND TEXT    so it did, unless it was the machine's fault
     sample I SECONDS    one time of candidate I     took I SECONDS   wall time spent on it
     reference SECONDS   of the reference kernel     disturbed        the round was repeated
     done

   Each candidate has a process of its own, forked from this one, whose memory holds the inputs.
   First all are checked, one after the other; the survivors stay, are timed in shuffled rounds,
   and are checked once more. Everything waits with a timeout. The candidates' processes die with
   the server, and what they started with them; the server is run by a keeper (keeper.c). */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "plan.h"
#include "reap.h"
#include "timer.h"

enum { MAX_REFERENCES = 4096, LONG = 10 };

typedef struct {
  pid_t process; /* 0 once it is gone */
  int channel;
  int samples, unchecked; /* whether it was called since its output was last checked */
  double fastest, spent, took;
} contestant;

static plan p;
static contestant contestants[MAX_CANDIDATES];
static reply answer;

/* -- processes ---------------------------------------------------------------------------- */

static void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

static int start(int i) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return -1;
  pid_t self = getpid(), process = fork();
  if (process == 0) {
    die_with(self);
    for (int j = 0; j < p.candidates; j++)
      if (contestants[j].process) close(contestants[j].channel);
    close(ends[0]);
    child_main(&p, &p.candidate[i], ends[1]);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return -1;
  }
  contestants[i].process = process;
  contestants[i].channel = ends[0];
  return 0;
}

static int is_contestant(pid_t process) {
  for (int i = 0; i < p.candidates; i++)
    if (contestants[i].process == process) return 1;
  return 0;
}

/* Ends a contestant, and whatever it started. */
static int stop(int i) {
  int status = 0;
  kill(contestants[i].process, SIGKILL);
  while (waitpid(contestants[i].process, &status, 0) < 0 && errno == EINTR) continue;
  close(contestants[i].channel);
  contestants[i].process = 0;
  end_children(is_contestant);
  return status;
}

static void report_error(int i, const char *kind, const char *text) {
  printf("error %d %s %s\n", i, kind, text);
}

static void report_loss(int i, const char *kind, const char *text) {
  printf("lost %d %s %s\n", i, kind, text);
}

static void report_answer(int i) {
  int lost = !strcmp(answer.error, "device_error");
  (lost ? report_loss : report_error)(i, answer.error, answer.text);
}

/* A process that is still silent is killed for its time; one that closed its channel has died. */
static void report_death(int i, double limit) {
  struct pollfd channel = {contestants[i].channel, POLLIN, 0};
  char text[128];
  int silent = poll(&channel, 1, 0) == 0, status = stop(i);
  if (silent) {
    snprintf(text, sizeof text, "no end within %.3g s", limit);
    report_loss(i, "timeout", text);
  } else if (WIFEXITED(status)) {
    snprintf(text, sizeof text, "ended by itself with status %d", WEXITSTATUS(status));
    report_error(i, "crash", text);
  } else if (WTERMSIG(status) == SIGKILL) {
    report_loss(i, "out_of_memory", "killed by the system");
  } else {
    snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    report_error(i, "crash", text);
  }
}

/* Waits for the contestant's answer; 0 if there is none, which is then reported. */
static int await_answer(int i, double limit) {
  char *to = (char *)&answer;
  double deadline = wall_seconds() + limit;
  for (size_t got = 0; got < sizeof answer;) {
    struct pollfd channel = {contestants[i].channel, POLLIN, 0};
    double left = fmax(deadline - wall_seconds(), 0);
    int ready = poll(&channel, 1, (int)ceil(left * 1e3));
    if (ready < 0 && errno == EINTR) continue;
    ssize_t bytes = ready > 0 ? read(contestants[i].channel, to + got, sizeof answer - got) : 0;
    if (bytes <= 0) {
      report_death(i, limit);
      return 0;
    }
    got += bytes;
  }
  return 1;
}

/* -- the protocol ------------------------------------------------------------------------- */

static void take_sample(int i, double seconds) {
  contestant *c = &contestants[i];
  printf("sample %d %.9e\n", i, seconds);
  c->samples++;
  c->fastest = fmin(c->fastest, seconds);
}

/* A call so long that a cold start does not show is a sample already. */
static void take_checked_calls(int i) {
  contestant *c = &contestants[i];
  for (int call = 0; call < answer.calls; call++) {
    double seconds = answer.seconds[call];
    if (seconds >= LONG * p.sample_seconds) take_sample(i, seconds);
    c->fastest = fmin(c->fastest, seconds);
  }
  p.best = fmin(p.best, c->fastest);
}

static void verify(int i) {
  contestants[i].fastest = INFINITY;
  if (start(i)) {
    report_loss(i, "device_error", "cannot start a process");
    return;
  }
  if (!await_answer(i, 2 * p.limit)) return;
  if (answer.kind == REPLY_ERROR) {
    report_answer(i);
  } else if (answer.kind == REPLY_SLOW) {
    double again = answer.calls > 1 ? answer.seconds[1] : INFINITY;
    printf("slow %d %.9e\n", i, fmin(answer.seconds[0], again));
  } else {
    take_checked_calls(i);
    return;
  }
  stop(i);
}

/* Whether a sample of it is one call. */
static int is_long(const contestant *c) { return c->fastest >= p.sample_seconds; }

/* The last call, which is checked, is a sample of a long one: room is left for it. */
static int wants_sample(const contestant *c) {
  int due = is_long(c), samples = c->samples + due;
  double spent = c->spent + due * c->fastest;
  if (!c->process || samples >= p.samples) return 0;
  if (!samples || spent + fmax(c->fastest, p.sample_seconds) <= p.budget) return 1;
  return samples < p.contender_samples && c->fastest <= p.contender_factor * p.best;
}

/* Sends an order and waits for the answer; 0 if there is none or an error, which is then told. */
static int obeyed(int i, order next) {
  contestant *c = &contestants[i];
  if (write(c->channel, &next, sizeof next) != sizeof next || !await_answer(i, 2 * p.limit + 1)) {
    if (c->process) report_death(i, p.limit);
    return 0;
  }
  if (answer.kind == REPLY_ERROR) {
    report_answer(i);
    stop(i);
    return 0;
  }
  return 1;
}

static void sample(int i) {
  contestant *c = &contestants[i];
  int calls = (int)fmin(fmax(ceil(p.sample_seconds / fmax(c->fastest, 1e-8)), 1), 1e6);
  order next = {calls > 1, calls};
  if (!obeyed(i, next)) return;
  c->unchecked = 1;
  take_sample(i, answer.seconds[0]);
  c->spent += answer.seconds[0] * (next.warm + next.calls);
  p.best = fmin(p.best, c->fastest);
}

/* Of a kernel that was called since it was checked, or was to be: it may have gone wrong. */
static void check_again(int i) {
  contestant *c = &contestants[i];
  if (!c->process || (c->samples && !c->unchecked)) return;
  if (obeyed(i, (order){0, 0}) && (is_long(c) || !c->samples)) take_sample(i, answer.seconds[0]);
}

static void timed(void (*step)(int), int i) {
  double start = wall_seconds();
  step(i);
  contestants[i].took += wall_seconds() - start;
  fflush(stdout);
}

static unsigned long random_below(unsigned long bound) {
  p.seed = p.seed * 6364136223846793005ul + 1442695040888963407ul;
  return (p.seed >> 33) % bound;
}

static void shuffle(int *items, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = (int)random_below(i + 1), item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Runs the reference kernel; whether it was much slower than its median so far. */
static int is_disturbed(void) {
  static double sorted[MAX_REFERENCES];
  static int count;
  double seconds = reference_seconds(p.wall);
  printf("reference %.9e\n", seconds);
  if (count < MAX_REFERENCES) sorted[count++] = seconds;
  qsort(sorted, count, sizeof *sorted, by_value);
  return seconds > (1 + p.drift) * sorted[count / 2];
}

/* One sample from each contestant that wants one, in random order; how many there were. */
static int run_round(void) {
  int members[MAX_CANDIDATES], count = 0;
  for (int i = 0; i < p.candidates; i++)
    if (wants_sample(&contestants[i])) members[count++] = i;
  shuffle(members, count);
  for (int k = 0; k < count; k++) timed(sample, members[k]);
  return count;
}

/* A round taken while the machine was slow counts, but does not use up the number of samples. */
static void run_rounds(void) {
  int repeats_left = p.samples / 2;
  for (int more = 1; more;) {
    int disturbed = is_disturbed();
    more = run_round();
    if (more && disturbed && repeats_left) {
      printf("disturbed\n");
      repeats_left--;
      p.samples++;
    }
  }
}

int main(void) {
  adopt_orphans();
  signal(SIGPIPE, SIG_IGN);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  const char *problem = plan_read(&p);
  if (problem) {
    printf("refused %s\n", problem);
    return fflush(stdout) != 0;
  }
  reference_seconds(p.wall); /* whoever dies on a machine that computes has not died of it */
  printf("ready\n");
  fflush(stdout);
  for (int i = 0; i < p.candidates; i++) timed(verify, i);
  run_rounds();
  for (int i = 0; i < p.candidates; i++) {
    timed(check_again, i);
    if (contestants[i].process) stop(i);
    printf("took %d %.6f\n", i, contestants[i].took);
  }
  printf("done\n");
  return fflush(stdout) != 0;
}

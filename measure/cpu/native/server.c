/* Measures one batch of candidates: reads a plan (plan.c) and writes one line per event.

     refused TEXT        nothing can be measured     ready            the candidates' turn begins
     error I KIND TEXT   candidate I failed          slow I SECONDS   cut short after this call
     lost I KIND TEXT    so it did, unless it was the machine's fault
     sample I SECONDS    one time of candidate I     took I SECONDS   wall time spent on it
     reference SECONDS   of the reference kernel     disturbed        the round was repeated
     done

   Each candidate has a process of its own, forked from this one, whose memory holds the inputs.
   First all are checked, one after the other; the survivors stay, are timed in shuffled rounds,
   and are checked once more. Rivals, which number on behind the candidates, are processes of the
   runner's that time a library; they take part in the rounds, and outlive the server. Everything waits with a timeout. The candidates' processes die with
   the server, and what they started with them; the server is run by a keeper (keeper.c). */
#define _GNU_SOURCE
#include <ctype.h>
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

static const double LOOK_SECONDS = 0.1; /* after which a late answer is looked for again */

typedef struct {
  pid_t process; /* 0 once it is gone */
  int channel;
  unsigned token; /* of what it is to answer next */
  int unchecked;  /* whether it was called since its output was last checked */
  tally tally;
  double took;
} contestant;

static plan p;
static contestant contestants[MAX_CANDIDATES + MAX_RIVALS];
static reply answer;

/* -- randomness ---------------------------------------------------------------------------- */

static unsigned long random_below(unsigned long bound) {
  p.seed = p.seed * 6364136223846793005ul + 1442695040888963407ul;
  return (p.seed >> 33) % bound;
}

static unsigned new_token(void) { return (unsigned)random_below(1ul << 31); }

/* -- processes ---------------------------------------------------------------------------- */

static void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

static int start(int i) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return -1;
  contestants[i].token = new_token();
  pid_t self = getpid(), process = fork();
  if (process == 0) {
    die_with(self);
    for (int j = 0; j < p.candidates + p.rivals; j++)
      if (contestants[j].process) close(contestants[j].channel);
    close(ends[0]);
    child_main(&p, &p.candidate[i], ends[1], contestants[i].token);
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

/* What a candidate's process says is written by the candidate, if that is hostile. */
static void report_answer(int i) {
  static const char *const kinds[] = {"out_of_bounds", "out_of_memory", "wrong_result",
                                      "compile_error", "device_error"};
  int known = 0, lost = !strcmp(answer.error, "device_error");
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    known |= !strcmp(answer.error, kinds[k]);
  for (char *c = answer.text; *c; c++)
    if (!isprint((unsigned char)*c)) *c = '?';
  (lost ? report_loss : report_error)(i, known ? answer.error : "crash", answer.text);
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

static int is_stopped(pid_t process) {
  siginfo_t found = {0};
  return !waitid(P_PID, process, &found, WSTOPPED | WNOHANG | WNOWAIT) && found.si_pid;
}

/* Waits for the contestant's answer; 0 if there is none, which is then reported. */
static int await_answer(int i, double limit) {
  char *to = (char *)&answer;
  pid_t process = contestants[i].process;
  double began = wall_seconds(), before = cpu_seconds_of(process);
  for (size_t got = 0; got < sizeof answer;) {
    struct pollfd channel = {contestants[i].channel, POLLIN, 0};
    double wait = fmax(limit - (wall_seconds() - began), LOOK_SECONDS);
    int ready = poll(&channel, 1, (int)ceil(wait * 1e3));
    if (ready < 0 && errno == EINTR) continue;
    double used = cpu_seconds_of(process) - before;
    if (!ready && !is_stopped(process) && !is_hung(limit, wall_seconds() - began, used)) continue;
    ssize_t bytes = ready > 0 ? read(contestants[i].channel, to + got, sizeof answer - got) : 0;
    if (bytes <= 0) {
      report_death(i, limit);
      return 0;
    }
    got += bytes;
  }
  answer.error[sizeof answer.error - 1] = answer.text[sizeof answer.text - 1] = 0;
  if (answer.token == contestants[i].token) return 1;
  report_error(i, "crash", "its process answered what nobody had asked");
  stop(i);
  return 0;
}

/* Seconds that the contestant's process has taken so far, by the clock that counts. */
static double seconds_of(int i) {
  return p.wall ? wall_seconds() : cpu_seconds_of(contestants[i].process);
}

static int is_rival(int i) { return i >= p.candidates; }

/* Whether the times of an answer are what was seen since `began`; else the contestant is out. It
   lies, or a busy host has taken the processor from it while it did not look at its clock. */
static int is_honest(int i, double claimed, double untimed, double began) {
  if (is_rival(i)) return 1;
  double seen = seconds_of(i) - began;
  if (is_believable(p.wall, claimed, untimed, seen)) return 1;
  char text[128];
  snprintf(text, sizeof text, "its process told of %.3g s of calls in %.3g s", claimed, seen);
  report_loss(i, "crash", text);
  stop(i);
  return 0;
}

/* -- the protocol ------------------------------------------------------------------------- */

static void take_sample(int i, double seconds) {
  tally *t = &contestants[i].tally;
  printf("sample %d %.9e\n", i, seconds);
  t->samples++;
  t->fastest = fmin(t->fastest, seconds);
}

/* A call so long that a cold start does not show is a sample already. */
static void take_checked_calls(int i) {
  tally *t = &contestants[i].tally;
  for (int call = 0; call < answer.calls; call++) {
    double seconds = answer.seconds[call];
    if (is_sample(&p.timing, seconds)) take_sample(i, seconds);
    t->fastest = fmin(t->fastest, seconds);
  }
  p.best = fmin(p.best, t->fastest);
}

static void verify(int i) {
  contestants[i].tally.fastest = INFINITY;
  double began = p.wall ? wall_seconds() : 0;
  if (start(i)) {
    report_loss(i, "device_error", "cannot start a process");
    return;
  }
  if (!await_answer(i, 2 * p.limit)) return;
  if (answer.kind == REPLY_ERROR) {
    report_answer(i);
    stop(i);
    return;
  }
  answer.calls = answer.calls == 2 ? 2 : 1;
  double claimed = answer.seconds[0] + (answer.calls == 2 ? answer.seconds[1] : 0);
  if (!is_honest(i, claimed, INFINITY, began)) return;
  if (answer.kind == REPLY_SLOW) {
    double again = answer.calls > 1 ? answer.seconds[1] : INFINITY;
    printf("slow %d %.9e\n", i, fmin(answer.seconds[0], again));
  } else {
    take_checked_calls(i);
    return;
  }
  stop(i);
}

/* Orders `calls` timed calls after `warm` others, or a check of the last output if there are none.
   Whoever is gone does not hear it, and then does not answer. */
static void give_order(int i, int warm, int calls) {
  contestant *c = &contestants[i];
  order next = {c->token = new_token(), warm, calls};
  ssize_t heard = write(c->channel, &next, sizeof next);
  (void)heard;
}

/* Waits until an order is obeyed; 0 if there is no answer or an error, which is then told. */
static int is_obeyed(int i) {
  if (!await_answer(i, 2 * p.limit + 1)) return 0;
  if (answer.kind != REPLY_ERROR) return 1;
  report_answer(i);
  stop(i);
  return 0;
}

static void sample(int i) {
  contestant *c = &contestants[i];
  int calls = p.flush_bytes ? 1 : calls_of_sample(&p.timing, &c->tally);
  int warm = calls > 1;
  double began = seconds_of(i);
  give_order(i, warm, calls);
  if (!is_obeyed(i)) return;
  double each = answer.seconds[0];
  if (!is_honest(i, each * calls, warm * each, began)) return;
  c->unchecked = 1;
  take_sample(i, each);
  c->tally.spent += each * (warm + calls);
  if (!is_rival(i)) p.best = fmin(p.best, c->tally.fastest);
}

static void enter_rivals(void) {
  for (int r = 0; r < p.rivals; r++) {
    contestant *c = &contestants[p.candidates + r];
    c->process = p.rival[r].process;
    c->channel = p.rival[r].channel;
    c->tally.fastest = INFINITY;
  }
}

/* One call says how many a sample spans. */
static void try_rival(int i) {
  give_order(i, 1, 1);
  if (is_obeyed(i)) contestants[i].tally.fastest = answer.seconds[0];
}

static int is_unchecked(int i) { return contestants[i].process && contestants[i].unchecked; }

static void order_check(int i) {
  if (is_unchecked(i)) give_order(i, 0, 0);
}

static void await_check(int i) {
  if (is_unchecked(i)) is_obeyed(i);
}

static void timed(void (*step)(int), int i) {
  double start = wall_seconds();
  step(i);
  contestants[i].took += wall_seconds() - start;
  fflush(stdout);
}

/* What the last of the timed calls left: a kernel may have gone wrong since it was checked. Nothing
   is timed any more, so all look at once. */
static void check_again(void) {
  for (int i = 0; i < p.candidates; i++) timed(order_check, i);
  for (int i = 0; i < p.candidates; i++) timed(await_check, i);
}

/* Ends all at once: it takes longer to free a process's memory than to ask for it. */
static void stop_all(void) {
  for (int i = 0; i < p.candidates; i++)
    if (contestants[i].process) kill(contestants[i].process, SIGKILL);
  for (int i = 0; i < p.candidates; i++)
    if (contestants[i].process) stop(i);
}

static void shuffle(int *items, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = (int)random_below(i + 1), item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}

/* One sample from each contestant that wants one, in random order; how many there were. */
static int run_round(void) {
  int members[MAX_CANDIDATES + MAX_RIVALS], count = 0;
  for (int i = 0; i < p.candidates + p.rivals; i++)
    if (contestants[i].process && wants_sample(&p.timing, &contestants[i].tally, p.best))
      members[count++] = i;
  shuffle(members, count);
  for (int k = 0; k < count; k++) timed(sample, members[k]);
  return count;
}

/* A round taken while the machine was slow counts, but does not use up the number of samples. */
static void run_rounds(void) {
  static references so_far;
  int repeats_left = p.timing.samples / 2;
  for (int more = 1; more;) {
    double seconds = reference_seconds(p.wall);
    printf("reference %.9e\n", seconds);
    int disturbed = is_disturbed(&p.timing, &so_far, seconds);
    more = run_round();
    if (more && disturbed && repeats_left) {
      printf("disturbed\n");
      repeats_left--;
      p.timing.samples++;
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
  enter_rivals();
  for (int i = 0; i < p.candidates; i++) timed(verify, i);
  for (int i = p.candidates; i < p.candidates + p.rivals; i++) timed(try_rival, i);
  run_rounds();
  check_again();
  stop_all();
  for (int i = 0; i < p.candidates; i++) printf("took %d %.6f\n", i, contestants[i].took);
  printf("done\n");
  return fflush(stdout) != 0;
}

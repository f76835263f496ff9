/* Runs a command of which nothing outlives it, or the process that asked for it.

     keeper PARENT MEMORY_BYTES CPU_SECONDS COMMAND ARGUMENT...

   The command may take so much address space and processor time; 0 is no limit. When it ends or is
   stopped, when PARENT dies, however that dies, or when we are sent a signal that ends a process,
   all that the command started is killed, in whatever session or group it is. We end as the
   command did: a compiler's driver, say, whose own children would otherwise go on. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reap.h"

static const int heard[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT};

static void set_limit(int resource, const char *text) {
  rlim_t value = strtoull(text, NULL, 10);
  if (value) setrlimit(resource, &(struct rlimit){value, value});
}

static void become(char **arguments, const sigset_t *mask, pid_t keeper) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);
  sigprocmask(SIG_SETMASK, mask, NULL);
  set_limit(RLIMIT_AS, arguments[2]);
  set_limit(RLIMIT_CPU, arguments[3]);
  execvp(arguments[4], arguments + 4);
  _exit(127);
}

/* Whether the command is over; its status then, if it has one. */
static int is_over(pid_t command, int *status) {
  int found;
  pid_t child;
  while ((child = waitpid(-1, &found, WNOHANG | WUNTRACED)) > 0) {
    if (child != command) continue;
    if (!WIFSTOPPED(found)) *status = found;
    return 1;
  }
  return 0;
}

static void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  sigset_t all;
  sigfillset(&all);
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  _exit(1);
}

int main(int count, char **arguments) {
  if (count < 5) return 2;
  sigset_t signals, before;
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) sigaddset(&signals, heard[i]);
  sigprocmask(SIG_BLOCK, &signals, &before);
  adopt_orphans();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != (pid_t)atol(arguments[1])) return 1;
  pid_t keeper = getpid(), command = fork();
  if (command < 0) return 1;
  if (command == 0) become(arguments, &before, keeper);
  int status = SIGKILL, number = 0; /* as wait tells of one that was killed */
  while (number != SIGTERM && number != SIGHUP && number != SIGINT && !is_over(command, &status))
    number = sigwaitinfo(&signals, NULL);
  end_children(NULL);
  end_as(status);
}

/* The process in which one candidate runs: it loads the object, calls the kernel on poisoned
   outputs between guards, checks every element, and then times calls, and checks what they left, as
   ordered. Whatever the kernel does to this process, the server sees an answer, a closed channel or
   a timeout. */
#define _GNU_SOURCE
#include "child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache_flush.h"
#include "pool.h"
#include "timer.h"

typedef void (*kernel)(void *const *buffers, void *workspace, const tw_runtime *runtime);

static struct {
  const plan *p;
  const candidate *c;
  int channel;
  zone *output, workspace;
  void **buffers; /* inputs, then outputs */
  kernel call;
  const tw_runtime *runtime;
  reply answer; /* too large for the stack a broken kernel leaves */
} own;

static void send_answer(void) {
  if (write(own.channel, &own.answer, sizeof own.answer) != sizeof own.answer) _exit(1);
}

static void __attribute__((noreturn, format(printf, 2, 3))) fail(const char *error,
                                                                 const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  own.answer.kind = REPLY_ERROR;
  snprintf(own.answer.error, sizeof own.answer.error, "%s", error);
  vsnprintf(own.answer.text, sizeof own.answer.text, format, arguments);
  va_end(arguments);
  send_answer();
  _exit(0);
}

/* -- faults ------------------------------------------------------------------------------- */

static void report_zone(const zone *z, const char *address) {
  if (!z->reserved || !zone_holds(z, address)) return;
  if (address < z->data)
    fail("out_of_bounds", "touched %s %ld bytes before its start", z->name,
         (long)(z->data - address));
  if (address >= z->data + z->bytes)
    fail("out_of_bounds", "touched %s %ld bytes past its end", z->name,
         (long)(address - (z->data + z->bytes)) + 1);
  fail("out_of_bounds", "wrote to %s, which is read-only, at byte %ld", z->name,
       (long)(address - z->data));
}

/* Names the zone that was hit, or the exhausted memory behind a null pointer. Otherwise the fault
   happens again, with the default action. */
static void on_fault(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)context;
  const char *address = info->si_addr;
  for (int i = 0; i < own.p->inputs; i++) report_zone(&own.p->input[i], address);
  for (int i = 0; i < own.p->outputs; i++) report_zone(&own.output[i], address);
  report_zone(&own.workspace, address);
  if (mmap(NULL, own.p->memory / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    fail("out_of_memory", "allocated more than the limit of %zu MiB", own.p->memory >> 20);
}

static void catch_faults(void) {
  static char stack[64 << 10];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, NULL);
  struct sigaction action = {.sa_sigaction = on_fault,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

/* -- set-up ------------------------------------------------------------------------------- */

static void silence(void) {
  int null = open("/dev/null", O_RDWR);
  for (int stream = 0; stream <= 2; stream++) dup2(null, stream);
}

/* Address space of this process now, plus what the candidate may add. */
static void limit_memory(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) fail("device_error", "cannot read own size");
  fclose(file);
  rlim_t bytes = (rlim_t)pages * sysconf(_SC_PAGESIZE) + own.p->memory;
  setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static void create_zone(zone *z, const char *name, size_t bytes) {
  if (zone_create(z, name, bytes))
    fail("device_error", "no memory for outputs and workspace (%s of %zu bytes)", name, bytes);
  zone_paint(z);
}

static void create_zones(void) {
  const plan *p = own.p;
  int buffers = p->inputs + p->outputs;
  own.output = calloc(p->outputs, sizeof *own.output);
  own.buffers = calloc(buffers, sizeof *own.buffers);
  if (!own.output || !own.buffers) fail("out_of_memory", "no memory for %d pointers", buffers);
  for (int i = 0; i < p->outputs; i++)
    create_zone(&own.output[i], p->output[i].name, p->output[i].bytes);
  create_zone(&own.workspace, "the workspace", own.c->workspace_bytes);
  memset(own.workspace.data, 0xff, own.workspace.bytes);
  memset(own.workspace.data, 0, own.c->workspace_zeroed);
  for (int i = 0; i < p->inputs; i++) own.buffers[i] = p->input[i].data;
  for (int i = 0; i < p->outputs; i++) own.buffers[p->inputs + i] = own.output[i].data;
}

static void load(void) {
  void *object = dlopen(own.c->path, RTLD_NOW | RTLD_LOCAL);
  if (!object) fail("device_error", "cannot load the object: %s", dlerror());
  own.call = (kernel)dlsym(object, own.c->entry);
  if (!own.call) fail("compile_error", "the object has no entry %s", own.c->entry);
  own.runtime = tw_runtime_create(own.p->threads, own.p->cpu);
  if (!own.runtime) fail("device_error", "no memory for the thread pool");
}

/* -- checking and timing ------------------------------------------------------------------ */

static double time_calls(int calls) {
  flush_caches(own.p->flush_memory, own.p->flush_bytes);
  double start = clock_seconds(own.p->wall);
  for (int i = 0; i < calls; i++) own.call(own.buffers, own.workspace.data, own.runtime);
  return (clock_seconds(own.p->wall) - start) / calls;
}

static void check_guards(const zone *z) {
  long distance = zone_damage(z);
  if (distance < 0)
    fail("out_of_bounds", "wrote to %s %ld bytes before its start", z->name, -distance);
  if (distance > 0)
    fail("out_of_bounds", "wrote to %s %ld bytes past its end", z->name, distance);
}

static unsigned char poison(const output *o, size_t byte) { return o->poison >> 8 * (byte % 2); }

static void poison_outputs(void) {
  for (int i = 0; i < own.p->outputs; i++) {
    const output *o = &own.p->output[i];
    zone *z = &own.output[i];
    uint16_t *words = (uint16_t *)z->data;
    for (size_t j = 0; j < z->bytes / 2; j++) words[j] = o->poison;
    if (z->bytes % 2) z->data[z->bytes - 1] = poison(o, 0);
  }
}

static size_t width(const output *o) { return o->bytes / o->comparison.count; }

/* Poison in some elements, other ones each time, for less than a call costs: a kernel that stops
   writing leaves them. The step is prime, so that they lie in all rows and columns. */
static void mark(const output *o, zone *z, size_t first, size_t step) {
  size_t count = o->comparison.count, bytes = width(o);
  for (size_t i = count > first ? first : 0; i < count; i += step)
    for (size_t j = i * bytes; j < (i + 1) * bytes; j++) z->data[j] = poison(o, j);
}

static void mark_outputs(void) {
  enum { STEP = 251 };
  static size_t first;
  first = (first + 97) % STEP;
  for (int i = 0; i < own.p->outputs; i++) mark(&own.p->output[i], &own.output[i], first, STEP);
}

static int is_poisoned(const output *o, const zone *z, long element) {
  for (size_t i = element * width(o); i < (element + 1) * width(o); i++)
    if ((unsigned char)z->data[i] != poison(o, i)) return 0;
  return 1;
}

/* Output and position in the message are numbers; the runner puts name and index in their place. */
static void check_output(int number, const char *call) {
  const output *o = &own.p->output[number];
  const comparison *c = &o->comparison;
  discrepancy worst = compare(c, own.output[number].data);
  if (!worst.wrong) return;
  if (is_poisoned(o, &own.output[number], worst.index))
    fail("wrong_result", "@%d:%ld left unwritten, or read (%ld of %ld elements wrong, %s)", number,
         worst.index, worst.wrong, c->count, call);
  char expected[64];
  snprintf(expected, sizeof expected, worst.low < worst.high ? "%.9g to %.9g" : "%.9g",
           isnan(worst.low) ? NAN : worst.low, worst.high);
  fail("wrong_result", "@%d:%ld is %.9g, expected %s (%ld of %ld elements wrong, %s)", number,
       worst.index, isnan(worst.got) ? NAN : worst.got, expected, worst.wrong, c->count, call);
}

static void check(const char *call) {
  for (int i = 0; i < own.p->outputs; i++) check_guards(&own.output[i]);
  check_guards(&own.workspace);
  for (int i = 0; i < own.p->outputs; i++) check_output(i, call);
}

static double checked_call(const char *name) {
  poison_outputs();
  double seconds = time_calls(1);
  check(name);
  return seconds;
}

static void obey(order next) {
  if (!next.calls) {
    check("last call");
    return;
  }
  mark_outputs();
  if (next.warm) time_calls(next.warm);
  own.answer.seconds[0] = time_calls(next.calls);
}

static void verify(void) {
  const plan *p = own.p;
  reply *answer = &own.answer;
  answer->seconds[0] = checked_call("call 1");
  answer->calls = 1;
  int slow = is_slow(&p->timing, p->best, 1, answer->seconds);
  if (!slow && wants_second_call(&p->timing, answer->seconds[0])) {
    answer->seconds[1] = checked_call("call 2");
    answer->calls = 2;
    slow = is_slow(&p->timing, p->best, 2, answer->seconds);
  }
  answer->kind = slow ? REPLY_SLOW : REPLY_OK;
  send_answer();
  if (answer->kind == REPLY_SLOW) _exit(0);
}

void child_main(const plan *p, const candidate *c, int channel, unsigned token) {
  own.p = p;
  own.c = c;
  own.channel = channel;
  own.answer.token = token;
  silence();
  if (p->threads > 1) tw_stay_on(p->cpu[0]);
  create_zones();
  load();
  limit_memory();
  catch_faults();
  verify();
  order next;
  while (read(channel, &next, sizeof next) == sizeof next) {
    own.answer.token = next.token;
    obey(next);
    send_answer();
  }
  _exit(0);
}

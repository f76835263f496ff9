/* The plan's text, in order: its numbers as declared; a CPU for each thread; data descriptor and
   its bytes; inputs (offset, bytes, name); outputs (offsets of least and greatest values and of the
   table, kind, count, bytes, poison, name); candidates (workspace, zeroed bytes, entry; path on a
   line of its own); rivals (process, channel).
   Arrays lie in the file of the data descriptor: inputs in their own dtype, the others as
   compare.h has them. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int read_numbers(plan *p) {
  protocol *t = &p->timing;
  return scanf("%d %d %lf %zu %zu %lf %lf %lf %lf %lf %lf %d %lf %d %lf %lu", &p->threads,
               &p->wall, &p->limit, &p->memory, &p->flush_bytes, &p->best, &t->slow_factor,
               &t->cold_seconds, &t->recheck_seconds, &t->sample_seconds, &t->budget, &t->samples,
               &t->contender_factor, &t->contender_samples, &t->drift, &p->seed) == 16;
}

/* One for all candidates, which leave nothing in it that another would read. */
static const char *map_flush_memory(plan *p) {
  if (!p->flush_bytes) return NULL;
  int flags = MAP_SHARED | MAP_ANONYMOUS;
  p->flush_memory = mmap(NULL, p->flush_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return p->flush_memory == MAP_FAILED ? "no memory to flush caches with" : NULL;
}

static int read_cpus(plan *p) {
  if (p->threads < 1 || p->threads > MAX_THREADS) return 0;
  for (int i = 0; i < p->threads; i++)
    if (scanf("%d", &p->cpu[i]) != 1) return 0;
  return 1;
}

static const char *read_inputs(plan *p, const char *data) {
  if (scanf("%d", &p->inputs) != 1 || p->inputs < 0) return "malformed number of inputs";
  p->input = calloc(p->inputs + 1, sizeof *p->input);
  p->input_name = calloc(p->inputs + 1, sizeof *p->input_name);
  if (!p->input || !p->input_name) return "no memory for the plan";
  for (int i = 0; i < p->inputs; i++) {
    size_t offset, bytes;
    if (scanf("%zu %zu %63s", &offset, &bytes, p->input_name[i]) != 3) return "malformed input";
    if (zone_create(&p->input[i], p->input_name[i], bytes)) return "no memory for the inputs";
    memset(p->input[i].open, 0xff, p->input[i].open_bytes);
    memcpy(p->input[i].data, data + offset, bytes);
    zone_seal(&p->input[i]);
  }
  return NULL;
}

static const char *read_outputs(plan *p, const char *data) {
  if (scanf("%d", &p->outputs) != 1 || p->outputs < 1) return "malformed number of outputs";
  p->output = calloc(p->outputs, sizeof *p->output);
  if (!p->output) return "no memory for the plan";
  for (output *o = p->output; o < p->output + p->outputs; o++) {
    size_t low, high, table;
    int kind;
    if (scanf("%zu %zu %zu %d %ld %zu %u %63s", &low, &high, &table, &kind, &o->comparison.count,
              &o->bytes, &o->poison, o->name) != 8)
      return "malformed output";
    o->comparison.kind = kind;
    o->comparison.low = data + low;
    o->comparison.high = data + high;
    o->comparison.table = (const double *)(data + table);
  }
  return NULL;
}

static const char *read_candidates(plan *p) {
  if (scanf("%d", &p->candidates) != 1 || p->candidates < 1 || p->candidates > MAX_CANDIDATES)
    return "malformed number of candidates";
  p->candidate = calloc(p->candidates, sizeof *p->candidate);
  if (!p->candidate) return "no memory for the plan";
  for (int i = 0; i < p->candidates; i++) {
    candidate *c = &p->candidate[i];
    if (scanf("%zu %zu %255s\n", &c->workspace_bytes, &c->workspace_zeroed, c->entry) != 3 ||
        !fgets(c->path, sizeof c->path, stdin))
      return "malformed candidate";
    if (c->workspace_zeroed > c->workspace_bytes) return "more zeros than workspace";
    c->path[strcspn(c->path, "\n")] = 0;
  }
  return NULL;
}

static const char *read_rivals(plan *p) {
  if (scanf("%d", &p->rivals) != 1 || p->rivals < 0 || p->rivals > MAX_RIVALS)
    return "malformed number of rivals";
  for (rival *r = p->rival; r < p->rival + p->rivals; r++)
    if (scanf("%d %d", &r->process, &r->channel) != 2) return "malformed rival";
  return NULL;
}

const char *plan_read(plan *p) {
  int descriptor;
  size_t bytes;
  if (!read_numbers(p) || !read_cpus(p)) return "malformed numbers";
  if (scanf("%d %zu", &descriptor, &bytes) != 2) return "malformed data descriptor";
  const char *data = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  close(descriptor); /* or else candidates would have it, too */
  if (data == MAP_FAILED) return "no access to the data";
  const char *problem = map_flush_memory(p);
  if (!problem) problem = read_inputs(p, data);
  if (!problem) problem = read_outputs(p, data);
  if (!problem) problem = read_candidates(p);
  return problem ? problem : read_rivals(p);
}

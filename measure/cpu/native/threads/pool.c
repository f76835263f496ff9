/* A pool of threads that outlives the calls it serves.

   A launch shares the workers' numbers among the caller and the pool's threads in turn and returns
   when all have run. Each thread begins with its own share, whose data its core may still have, and
   goes on with those that nobody has begun: where other programs or libraries keep a thread from
   its core, nobody waits for it. Waiting threads spin for some microseconds, so that back-to-back
   launches are cheap, and then sleep, so that other libraries' threads have the cores to themselves.

   The system tends to wake a thread on the CPU of whoever wakes it, where it would wait for the
   caller's own share to end. So sleepers are barred from the caller's CPU while they are woken,
   and only then: should another process take theirs, the system may still move them.

   A launch that finds the pool taken (by another thread, or by the launch it is part of) runs all
   workers on its own thread. After fork() the child has none of the threads: it starts its own. */
#define _GNU_SOURCE
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 2000, STACK_BYTES = 1 << 20 };

struct tw_pool {
  tw_pool *next;       /* in the list of all pools of this process */
  int *cpus;           /* of the threads, or NULL */
  pthread_t *handles;  /* of the threads; the first, for the caller, is unused */
  int threads;         /* wanted, the caller's included */
  int started;         /* there are, the caller's included; 0 before the first launch */
  atomic_uint *begun;  /* of each share, the last launch in which it was begun */
  pthread_mutex_t taken; /* held from the start of a launch to its end */
  pthread_mutex_t mutex; /* guards the sleeping: launch rises under it */
  pthread_cond_t launched, joined;
  atomic_uint launch;  /* rises with each launch */
  int sleeping;        /* pool threads that wait for the launch asleep; under the mutex */
  atomic_int unfinished; /* shares of the launch */
  int workers;
  void (*task)(void *context, int worker);
  void *context;
};

typedef struct {
  tw_pool *pool;
  int index;
} thread_argument;

static _Atomic(tw_pool *) pools;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Runs in the child of a fork, whose only thread is this one. */
static void forget_threads(void) {
  for (tw_pool *pool = atomic_load(&pools); pool; pool = pool->next) {
    pool->started = 0;
    pthread_mutex_init(&pool->taken, NULL);
  }
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_threads); }

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Runs a share of a launch unless it was begun before, or the launch is over. */
static void run_share(tw_pool *pool, int share, unsigned launch) {
  unsigned before = launch - 1;
  if (!atomic_compare_exchange_strong(&pool->begun[share], &before, launch)) return;
  for (int worker = share; worker < pool->workers; worker += pool->started)
    pool->task(pool->context, worker);
  if (atomic_fetch_sub(&pool->unfinished, 1) > 1) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_signal(&pool->joined);
  pthread_mutex_unlock(&pool->mutex);
}

static void run_shares(tw_pool *pool, int own, unsigned launch) {
  for (int i = 0; i < pool->started; i++) run_share(pool, (own + i) % pool->started, launch);
}

static unsigned await_launch(tw_pool *pool, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load(&pool->launch) != seen) return atomic_load(&pool->launch);
    relax();
  }
  pthread_mutex_lock(&pool->mutex);
  pool->sleeping++;
  while (atomic_load(&pool->launch) == seen) pthread_cond_wait(&pool->launched, &pool->mutex);
  pool->sleeping--;
  pthread_mutex_unlock(&pool->mutex);
  return atomic_load(&pool->launch);
}

void tw_stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void *serve(void *argument) {
  thread_argument own = *(thread_argument *)argument;
  free(argument);
  if (own.pool->cpus) tw_stay_on(own.pool->cpus[own.index]);
  for (unsigned seen = 0;;) {
    seen = await_launch(own.pool, seen);
    run_shares(own.pool, own.index, seen);
  }
  return NULL;
}

static void await_join(tw_pool *pool) {
  for (int i = 0; i < SPINS; i++) {
    if (!atomic_load(&pool->unfinished)) return;
    relax();
  }
  pthread_mutex_lock(&pool->mutex);
  while (atomic_load(&pool->unfinished)) pthread_cond_wait(&pool->joined, &pool->mutex);
  pthread_mutex_unlock(&pool->mutex);
}

/* Starts what threads the system gives; a launch works with fewer than wanted. */
static void start(tw_pool *pool) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->launched, NULL);
  pthread_cond_init(&pool->joined, NULL);
  atomic_store(&pool->launch, 0);
  for (int i = 0; i < pool->threads; i++) atomic_store(&pool->begun[i], 0);
  pool->sleeping = 0;
  pool->started = 1;
  while (pool->started < pool->threads) {
    thread_argument *argument = malloc(sizeof *argument);
    if (!argument) break;
    *argument = (thread_argument){pool, pool->started};
    if (pthread_create(&pool->handles[pool->started], &attributes, serve, argument)) {
      free(argument);
      break;
    }
    pool->started++;
  }
  pthread_attr_destroy(&attributes);
}

static void allow(tw_pool *pool, const cpu_set_t *cpus) {
  for (int i = 1; i < pool->started; i++)
    pthread_setaffinity_np(pool->handles[i], sizeof *cpus, cpus);
}

/* Bars the threads from the caller's CPU, if that leaves them any. Tells whether it did, and
   through `allowed` where they might run before. */
static int bar(tw_pool *pool, cpu_set_t *allowed) {
  int cpu = sched_getcpu();
  if (cpu < 0 || pthread_getaffinity_np(pool->handles[1], sizeof *allowed, allowed)) return 0;
  cpu_set_t others = *allowed;
  CPU_CLR(cpu, &others);
  if (CPU_EQUAL(&others, allowed) || !CPU_COUNT(&others)) return 0;
  allow(pool, &others);
  return 1;
}

/* The number of the launch that it begins. */
static unsigned launch(tw_pool *pool) {
  cpu_set_t allowed;
  pthread_mutex_lock(&pool->mutex);
  int barred = pool->sleeping && !pool->cpus && bar(pool, &allowed);
  atomic_store(&pool->unfinished, pool->started);
  unsigned number = atomic_fetch_add(&pool->launch, 1) + 1;
  pthread_cond_broadcast(&pool->launched);
  pthread_mutex_unlock(&pool->mutex);
  if (barred) allow(pool, &allowed);
  return number;
}

static void parallel(tw_pool *pool, int workers, void (*task)(void *, int), void *context) {
  if (workers < 2 || pool->threads < 2 || pthread_mutex_trylock(&pool->taken)) {
    for (int worker = 0; worker < workers; worker++) task(context, worker);
    return;
  }
  if (!pool->started) start(pool);
  pool->workers = workers;
  pool->task = task;
  pool->context = context;
  run_shares(pool, 0, launch(pool));
  await_join(pool);
  pthread_mutex_unlock(&pool->taken);
}

tw_runtime *tw_runtime_create(int threads, const int *cpus) {
  tw_runtime *runtime = malloc(sizeof *runtime);
  tw_pool *pool = calloc(1, sizeof *pool);
  int *own_cpus = malloc(threads * sizeof *own_cpus);
  pthread_t *handles = malloc(threads * sizeof *handles);
  atomic_uint *begun = calloc(threads, sizeof *begun);
  if (!runtime || !pool || !own_cpus || !handles || !begun) {
    free(begun);
    free(handles);
    free(runtime);
    free(pool);
    free(own_cpus);
    return NULL;
  }
  if (cpus) pool->cpus = memcpy(own_cpus, cpus, threads * sizeof *cpus);
  else free(own_cpus);
  pthread_once(&once, watch_forks);
  pthread_mutex_init(&pool->taken, NULL);
  pool->threads = threads;
  pool->handles = handles;
  pool->begun = begun;
  pool->next = atomic_load(&pools);
  while (!atomic_compare_exchange_weak(&pools, &pool->next, pool)) continue;
  *runtime = (tw_runtime){parallel, pool};
  return runtime;
}

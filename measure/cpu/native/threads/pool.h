/* A pool of threads that outlives the calls it serves. See pool.c. */
#ifndef TW_POOL_H
#define TW_POOL_H

typedef struct tw_pool tw_pool;

/* What a kernel is handed; the same declarations as spaces/cpu/abi.py. */
typedef struct {
  void (*parallel)(tw_pool *pool, int workers, void (*task)(void *context, int worker),
                   void *context);
  tw_pool *pool;
} tw_runtime;

/* A runtime over `threads` threads, the caller's included; NULL without memory. Threads start
   with the first launch and sleep between launches. With `cpus`, one number for each thread, they
   stay on these CPUs; the caller, who has the first, sees to that itself. */
tw_runtime *tw_runtime_create(int threads, const int *cpus);

/* Keeps the calling thread on one CPU. */
void tw_stay_on(int cpu);

#endif

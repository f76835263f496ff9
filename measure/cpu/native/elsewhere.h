/* Work of others between two calls of a kernel. */
#ifndef TW_ELSEWHERE_H
#define TW_ELSEWHERE_H

#include <stddef.h>

/* Writes to every cache line of `memory`, so that what the caches held has to make room. */
void work_elsewhere(volatile char *memory, size_t bytes);

#endif

/* Flush caches between two calls of a kernel, as the work of its caller does. */
#ifndef TW_CACHE_FLUSH_H
#define TW_CACHE_FLUSH_H

#include <stddef.h>

/* Writes to every cache line of `memory`, so that what the caches held has to make room. */
void flush_caches(volatile char *memory, size_t bytes);

#endif

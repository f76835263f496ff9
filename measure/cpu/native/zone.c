/* Memory with guards on both sides: pages without access, and canary bytes in the slack between
   them and the data. The data ends at the last 64-byte boundary before the rear guard, so that
   one vector too many already faults. Zones of 4 MiB and more are whole huge pages, as NumPy's
   arrays of that size are; no others are. All is written before it is used, so the memory is asked
   for at once, which takes less time than page by page (Linux before 5.14 knows no such advice). */
#define _GNU_SOURCE
#include "zone.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE = 2 << 20, GUARD = HUGE, PAGE = 64 << 10, ALIGNMENT = 64, CANARY = 0xA5 };

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

int zone_create(zone *z, const char *name, size_t bytes) {
  size_t whole = round_up(bytes ? bytes : 1, ALIGNMENT);
  int large = bytes >= 2 * HUGE;
  size_t open_bytes = round_up(whole, large ? HUGE : PAGE);
  size_t reserved_bytes = open_bytes + 2 * GUARD + HUGE;
  char *reserved = mmap(NULL, reserved_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return -1;
  char *open = (char *)round_up((uintptr_t)reserved + GUARD, HUGE);
  if (mprotect(open, open_bytes, PROT_READ | PROT_WRITE)) return -1;
  madvise(open, open_bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  madvise(open, open_bytes, MADV_POPULATE_WRITE);
  *z = (zone){name, reserved, reserved_bytes, open, open_bytes, open + open_bytes - whole, bytes};
  return 0;
}

void zone_seal(zone *z) { mprotect(z->open, z->open_bytes, PROT_READ); }

void zone_paint(zone *z) {
  char *end = z->data + z->bytes;
  memset(z->open, CANARY, z->data - z->open);
  memset(end, CANARY, z->open + z->open_bytes - end);
}

/* Offset of the first byte that is no canary, or -1. Compares the block with itself shifted. */
static long first_damaged(const char *block, size_t bytes) {
  if (!bytes) return -1;
  if ((unsigned char)block[0] == CANARY && !memcmp(block, block + 1, bytes - 1)) return -1;
  size_t i = 0;
  while ((unsigned char)block[i] == CANARY) i++;
  return (long)i;
}

long zone_damage(const zone *z) {
  const char *end = z->data + z->bytes;
  long after = first_damaged(end, z->open + z->open_bytes - end);
  if (after >= 0) return after + 1;
  long before = first_damaged(z->open, z->data - z->open);
  return before >= 0 ? before - (z->data - z->open) : 0;
}

int zone_holds(const zone *z, const char *address) {
  return address >= z->reserved && address < z->reserved + z->reserved_bytes;
}

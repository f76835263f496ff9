/* Memory with guards on both sides. See zone.c. */
#ifndef TW_ZONE_H
#define TW_ZONE_H

#include <stddef.h>

typedef struct {
  const char *name;
  char *reserved; /* all that is mapped, guard pages included */
  size_t reserved_bytes;
  char *open; /* the part that can be written */
  size_t open_bytes;
  char *data; /* what a kernel is handed: 64-byte aligned, as near to the end as that allows */
  size_t bytes;
} zone;

int zone_create(zone *z, const char *name, size_t bytes); /* 0, or -1 without memory */
void zone_seal(zone *z);                                  /* read-only from now on */
void zone_paint(zone *z);                                 /* canary bytes around the data */
long zone_damage(const zone *z); /* distance of a changed canary from the data: < 0 is before it,
                                    > 0 after it, 0 none */
int zone_holds(const zone *z, const char *address);       /* guards included */

#endif

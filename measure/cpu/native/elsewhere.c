#include "elsewhere.h"

enum { LINE = 64 };

void work_elsewhere(volatile char *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i += LINE) memory[i]++;
}

// How a run ends badly: one kind, one sentence, and the place.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <map>

#include "machine.h"

namespace tw::emulator {

std::string text(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

std::string place(const Fiber &fiber) {
  const Index &block = fiber.block->index;
  return text("thread %u of block (%u, %u, %u)", fiber.linear, block.x, block.y, block.z);
}

void fault(const char *kind, const char *format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  printf("%s\n%s", kind, line);
  if (machine.current) printf(", by %s", place(*machine.current).c_str());
  printf("\n");
  fflush(stdout);
  _exit(3);
}

void deadlock() {
  // threads that wait for the same thing are one entry: ranges of thread numbers
  std::map<std::string, std::vector<u32>> groups;
  for (Cluster &cluster : machine.clusters)
    for (auto &block : cluster.blocks)
      for (Fiber &fiber : block->fibers)
        if (!fiber.ended)
          groups[text("in block (%u, %u, %u) wait for ", block->index.x, block->index.y, block->index.z)
                 + fiber.waits_for()].push_back(fiber.linear);
  std::string report;
  for (auto &[what, threads] : groups) {
    std::string ranges;
    for (size_t i = 0; i < threads.size();) {
      size_t end = i;
      while (end + 1 < threads.size() && threads[end + 1] == threads[end] + 1) end++;
      ranges += text(end > i ? "%s%u-%u" : "%s%u", i ? ", " : "", threads[i], threads[end]);
      i = end + 1;
    }
    report += text("%sthreads %s ", report.empty() ? "" : "; ", ranges.c_str()) + what;
  }
  machine.current = nullptr;
  fault("deadlock", "deadlock: %s", report.c_str());
}

}  // namespace tw::emulator

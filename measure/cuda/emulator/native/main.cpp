// The emulator's process: reads one launch from standard input, runs it, reports on standard output.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <algorithm>
#include <iostream>
#include <sstream>


#include "machine.h"

namespace tw::emulator {

namespace {

constexpr size_t guard = 256 << 20;  // bytes around a buffer in which an access traps

void on_signal(int, siginfo_t *info, void *) {
  const char *at = (const char *)info->si_addr;
  for (const Buffer &buffer : machine.buffers)
    if (at >= buffer.base - guard && at < buffer.base + buffer.bytes + guard)
      fault("out_of_bounds", "a plain access at byte %lld of %s, which has %llu bytes",
            (i64)(at - buffer.base), buffer.name.c_str(), buffer.bytes);
  fault("crash", "a plain access to address %p, in no buffer", at);
}

void catch_faults() {
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

[[noreturn]] void refuse(const std::string &why) {
  fprintf(stderr, "emulator: %s\n", why.c_str());
  _exit(2);
}

// Maps a region of the memory file between two inaccessible ones.
char *map_region(int file, u64 offset, u64 bytes, bool writable) {
  char *space = (char *)mmap(nullptr, bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) refuse("no address space for a buffer");
  if (bytes && mmap(space + guard, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED,
                    file, offset) == MAP_FAILED)
    refuse("a buffer cannot be mapped");
  return space + guard;
}

TensorMap *read_tensor(std::istream &line) {
  auto *map = new TensorMap{};
  u32 buffer, rank, element, kind, swizzle, windows, number;
  i32 corner;
  line >> buffer >> rank >> element >> kind >> swizzle >> windows;
  map->base = (u64)machine.buffers.at(buffer).base;
  map->rank = rank;
  map->element_bytes = element;
  map->kind = kind;
  map->swizzle = swizzle;
  for (u32 d = 0; d < rank; d++) line >> map->dims[d];
  for (u32 d = 1; d < rank; d++) line >> map->strides[d - 1];
  map->windows = windows;
  for (u32 d = 0; d < (windows ? 2 : rank); d++) { line >> number; map->box[d] = number; }
  for (u32 d = 0; d < windows; d++) { line >> corner; map->lower[d] = corner; }
  for (u32 d = 0; d < windows; d++) { line >> corner; map->upper[d] = corner; }
  for (u32 d = 0; d < windows; d++) { line >> number; map->steps[d] = number; }
  return map;
}

void read_request() {
  Launch &launch = machine.launch;
  std::string library, entry, row;
  int file = -1;
  static i32 extent = 0;  // of a call's open axis
  while (std::getline(std::cin, row)) {
    std::istringstream line(row);
    std::string word;
    line >> word;
    if (word == "library") std::getline(line >> std::ws, library);
    else if (word == "entry") line >> entry;
    else if (word == "grid") line >> launch.grid.x >> launch.grid.y >> launch.grid.z;
    else if (word == "block") line >> launch.block.x >> launch.block.y >> launch.block.z;
    else if (word == "cluster") line >> launch.cluster.x >> launch.cluster.y >> launch.cluster.z;
    else if (word == "shared") line >> launch.shared_bytes;
    else if (word == "resident") line >> launch.resident;
    else if (word == "early") line >> launch.early;
    else if (word == "seed") line >> machine.seed;
    else if (word == "mode") {
      std::string mode;
      line >> mode;
      machine.mode = mode == "lazy" ? Mode::lazy : mode == "random" ? Mode::random : Mode::eager;
    } else if (word == "memory") line >> file;
    else if (word == "buffer") {  // region's offset and bytes in the file, data's offset in it
      Buffer buffer;
      u64 offset, bytes, start;
      line >> buffer.name >> offset >> bytes >> start >> buffer.bytes >> buffer.writable;
      buffer.base = map_region(file, offset, bytes, buffer.writable) + start;
      machine.buffers.push_back(buffer);
    } else if (word == "tensor") launch.arguments.push_back(read_tensor(line));
    else if (word == "extent") line >> extent;
    else if (!word.empty()) refuse("unknown line: " + row);
    if (line.fail()) refuse("malformed line: " + row);
  }
  machine.random_state = machine.seed * 2654435761u + 88172645u;
  const size_t tensors = launch.arguments.size();
  for (Buffer &buffer : machine.buffers) launch.arguments.push_back(&buffer.base);
  std::rotate(launch.arguments.begin(), launch.arguments.begin() + tensors, launch.arguments.end());
  if (extent) launch.arguments.push_back(&extent);
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) refuse(dlerror());
  launch.entry = (void (*)(void **))dlsym(handle, ("tw_call_" + entry).c_str());
  if (!launch.entry) refuse(dlerror());
}

}  // namespace

}  // namespace tw::emulator

int main() {
  using namespace tw::emulator;
  const rlimit none{0, 0}, most{64ull << 30, 64ull << 30};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_AS, &most);
  read_request();
  catch_faults();
  run();
  printf("ok\n%llu %llu %llu\n", machine.switches, machine.phases, machine.wavefronts);
  fflush(stdout);
  _exit(0);
}

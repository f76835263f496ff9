// What blocks may see of each other's stores to global memory.
//
// A store of one cluster may be read by another if three things have followed it, and else it is a
// fault to read it, whatever the order of the threads:
//  - a fence_global() of the thread that stored, or of one that has since met it at a barrier;
//  - a ticket or a signal of the thread that stored, or of one that has since met it at a barrier;
//  - a fence_global(), a ticket or a flag awaited in the cluster that reads.
// A ticket and a signal are fences for their own thread's stores. To the PTX ISA (causality order in
// its memory consistency model) they are for those of all that the thread has met before, so the
// first of the three asks for more than hardware does.
#include <algorithm>

#include "machine.h"

namespace tw::emulator {

namespace {

u32 threads_per_cluster() {
  const Index &block = machine.launch.block, &size = machine.launch.cluster;
  return block.x * block.y * block.z * size.x * size.y * size.z;
}

Writer &this_writer() { return machine.writers[machine.current->number]; }

u32 cluster_of(const Mark &mark) { return (mark.thread - 1) / threads_per_cluster(); }

std::string place(const Mark &mark) {
  const Index &block = machine.launch.block;
  const u32 threads = block.x * block.y * block.z, inside = (mark.thread - 1) % threads_per_cluster();
  const Index at = block_index_of(cluster_of(mark), inside / threads);
  return text("thread %u of block (%u, %u, %u)", inside % threads, at.x, at.y, at.z);
}

bool is_foreign(const Mark &mark) {
  return mark.thread && cluster_of(mark) != machine.current->block->cluster->number;
}

bool is_fenced(const Mark &mark) {
  return mark.time < machine.writers[mark.thread - 1].fenced || mark.time < machine.orders[cluster_of(mark)].fenced;
}

bool is_signalled(const Mark &mark) {
  return mark.time < machine.writers[mark.thread - 1].signalled || mark.time < machine.orders[cluster_of(mark)].signalled;
}

}  // namespace

void add_writers(u32 cluster) {
  machine.writers.resize((size_t)(cluster + 1) * threads_per_cluster());
  machine.orders.resize(cluster + 1);
}

void note_store(Buffer &buffer, u64 offset, u32 bytes, bool addition) {
  if (buffer.marks.empty()) buffer.marks.resize(buffer.bytes);
  const Mark mine{machine.current->number + 1, machine.clock};
  for (Marks *marks = &buffer.marks[offset], *end = marks + bytes; marks != end; marks++) {
    if (!addition) marks->other = {};
    else if (is_foreign(marks->last) && !is_fenced(marks->last)) marks->other = marks->last;
    marks->last = mine;
  }
}

void check_load(const char *what, const Buffer &buffer, u64 offset, u32 bytes) {
  if (buffer.marks.empty() || !machine.current) return;
  const u32 acquired = machine.orders[machine.current->block->cluster->number].acquired;
  for (u64 i = offset; i < offset + bytes; i++)
    for (const Mark &mark : {buffer.marks[i].last, buffer.marks[i].other}) {
      if (!is_foreign(mark)) continue;
      const char *why = !is_fenced(mark)            ? "without a fence_global() since"
                        : !is_signalled(mark)       ? "without a ticket or signal since"
                        : mark.time >= acquired     ? "after the last fence, ticket or flag here"
                                                    : nullptr;
      if (why)
        fault("wrong_result", "%s reads byte %llu of %s, which %s stored %s", what, i, buffer.name.c_str(),
              place(mark).c_str(), why);
    }
}

void leave_barrier(u32 completed) {
  u32 &passed = this_writer().passed;
  passed = std::max(passed, completed);
}

void fence_global() {
  Order &order = machine.orders[machine.current->block->cluster->number];
  Writer &writer = this_writer();
  writer.fenced = order.acquired = ++machine.clock;
  order.fenced = std::max(order.fenced, writer.passed);
}

void signal_stores() {
  Order &order = machine.orders[machine.current->block->cluster->number];
  Writer &writer = this_writer();
  writer.fenced = writer.signalled = ++machine.clock;
  order.signalled = std::max(order.signalled, writer.passed);
}

void acquire_stores() { machine.orders[machine.current->block->cluster->number].acquired = ++machine.clock; }

}  // namespace tw::emulator

// Where threads meet: warp collectives, named barriers, mbarriers, clusters, flags in global memory.
#include <cstring>

#include "machine.h"

namespace tw::emulator {

namespace {

Mbarrier &find_mbarrier(const char *what, Block &block, u32 address) {
  const u32 offset = offset_of(what, block, address, 8, 8);
  const auto found = block.mbarriers.find(offset);
  if (found == block.mbarriers.end())
    fault("wrong_result", "%s of an mbarrier at byte %u that is not initialised", what, offset);
  return found->second;
}

void perhaps_complete(Mbarrier &barrier) {
  if (barrier.pending || barrier.bytes) return;
  barrier.pending = barrier.arrivals;
  barrier.phase ^= 1;
  barrier.completed = ++machine.clock;
  wake(barrier.waiters);
}

void arrive(u32 offset, Mbarrier &barrier) {
  if (--barrier.pending < 0)
    fault("wrong_result", "one arrival too many at the mbarrier at byte %u: %d a phase", offset,
          barrier.arrivals);
  perhaps_complete(barrier);
}

void meet(Team &team, u32 rank, const char *instruction, void *argument, const Operation &operation) {
  if (team.arrived && strcmp(team.instruction, instruction) != 0)
    fault("wrong_result", "threads that execute together meet in %s and in %s", team.instruction, instruction);
  team.instruction = instruction;
  team.arguments[rank] = argument;
  note_meeting();
  const u32 generation = team.generation;
  if (++team.arrived == team.arguments.size()) {
    operation(team.arguments.data());
    team.arrived = 0;
    team.generation++;
    team.completed = ++machine.clock;
    wake(team.waiters);
  }
  while (team.generation == generation)
    suspend(team.waiters, [&team, instruction] {
      return text("the others of %zu threads in %s", team.arguments.size(), instruction);
    });
  leave_barrier(team.completed);
}

}  // namespace

void by_warp(const char *instruction, void *argument, const Operation &operation) {
  Fiber &fiber = *machine.current;
  meet(fiber.warp->team, fiber.lane, instruction, argument, operation);
}

void by_warpgroup(const char *instruction, void *argument, const Operation &operation) {
  Fiber &fiber = *machine.current;
  const u32 group = fiber.linear / 128;
  if (group >= fiber.block->warpgroups.size())
    fault("crash", "%s by warp %u, which is in no whole warpgroup", instruction, fiber.linear / 32);
  meet(fiber.block->warpgroups[group].team, fiber.linear % 128, instruction, argument, operation);
}

void sync_warp() {
  by_warp("sync_warp", nullptr, [](void **) {});
  perhaps_preempt(at_meeting);
}

void shuffle(void *value, u32 bytes, u32 from_lane) {
  struct Argument { void *value; u32 from; } mine{value, from_lane};
  by_warp("a shuffle", &mine, [bytes](void **arguments) {
    char values[32][8];
    for (int i = 0; i < 32; i++) memcpy(values[i], ((Argument *)arguments[i])->value, bytes);
    for (int i = 0; i < 32; i++) {
      auto *a = (Argument *)arguments[i];
      memcpy(a->value, values[a->from], bytes);
    }
  });
}

void barrier(u32 id, u32 threads, bool wait) {
  Block &block = *machine.current->block;
  if (id > 15) fault("crash", "there is no named barrier %u", id);
  if (!threads) threads = block.fibers.size();
  if (threads % 32 || threads > block.fibers.size())
    fault("crash", "named barrier %u cannot wait for %u threads", id, threads);
  NamedBarrier &barrier = block.named[id];
  if (barrier.arrived && barrier.threads != threads)
    fault("wrong_result", "named barrier %u is used for %u and for %u threads", id, barrier.threads, threads);
  barrier.threads = threads;
  note_meeting();
  const u32 generation = barrier.generation;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    barrier.generation++;
    barrier.completed = ++machine.clock;
    wake(barrier.waiters);
  }
  while (wait && barrier.generation == generation)
    suspend(barrier.waiters, [&barrier, id] {
      return text("barrier %u: %u of %u threads are there", id, barrier.arrived, barrier.threads);
    });
  if (wait) leave_barrier(barrier.completed);
  perhaps_preempt(at_meeting);
}

void mbarrier_init(u32 address, u32 arrivals) {
  Block &block = owner("mbarrier_init", address, false);
  const u32 offset = offset_of("mbarrier_init", block, address, 8, 8);
  if (arrivals == 0 || arrivals >= 1 << 20) fault("crash", "mbarrier_init for %u arrivals", arrivals);
  if (block.mbarriers.count(offset))
    fault("wrong_result", "the mbarrier at byte %u is initialised a second time", offset);
  memset(&block.states[offset], barrier_word, 8);
  Mbarrier &barrier = block.mbarriers[offset];
  barrier.pending = barrier.arrivals = arrivals;
}

void fence_barrier_init() {
  for (auto &entry : machine.current->block->mbarriers) entry.second.visible = true;
}

void mbarrier_arrive(u32 address, u32 expected_bytes, bool remote) {
  const char *what = remote ? "mbarrier_arrive_remote" : "mbarrier_arrive";
  Block &block = owner(what, address, remote);
  Mbarrier &barrier = find_mbarrier(what, block, address);
  if (remote && !barrier.visible) fault("wrong_result", "%s before fence_barrier_init", what);
  barrier.bytes += expected_bytes;
  arrive(offset_of(what, block, address, 8, 8), barrier);
  perhaps_preempt(at_meeting);
}

void mbarrier_expect(u32 address, u32 bytes) {
  find_mbarrier("mbarrier_expect", owner("mbarrier_expect", address, false), address).bytes += bytes;
}

void mbarrier_wait(u32 address, u32 parity, bool cluster) {
  if (parity > 1) fault("crash", "mbarrier_wait for parity %u", parity);
  Block &block = owner("mbarrier_wait", address, false);
  Mbarrier &barrier = find_mbarrier("mbarrier_wait", block, address);
  const u32 offset = offset_of("mbarrier_wait", block, address, 8, 8);
  perhaps_preempt(at_meeting);
  while (barrier.phase == parity)
    suspend(barrier.waiters, [&barrier, offset, parity] {
      return text("mbarrier at byte %u, parity %u: in phase parity %u, %d of %d arrivals and %d bytes to come",
                  offset, parity, barrier.phase, barrier.pending, barrier.arrivals, barrier.bytes);
    });
  leave_barrier(barrier.completed);
  if (barrier.remote && !cluster)
    fault("wrong_result", "mbarrier_wait at byte %u for what another block stores: that takes mbarrier_wait_cluster",
          offset);
}

void complete_bytes(const char *what, Block &block, u32 address, u32 bytes, bool remote) {
  Mbarrier &barrier = find_mbarrier(what, block, address);
  if (!barrier.visible)
    fault("wrong_result", "%s completes on the mbarrier at byte %u before fence_barrier_init", what,
          offset_of(what, block, address, 8, 8));
  barrier.bytes -= bytes;
  barrier.remote |= remote;
  perhaps_complete(barrier);
}

void cluster_arrive() {
  Fiber &fiber = *machine.current;
  Cluster &cluster = *fiber.block->cluster;
  if (fiber.cluster_arrived) fault("wrong_result", "cluster_arrive twice without cluster_wait");
  fiber.cluster_arrived = true;
  fiber.cluster_phase = cluster.phase;
  if (++cluster.arrived == fiber.block->fibers.size() * cluster.blocks.size()) {
    cluster.arrived = 0;
    cluster.phase++;
    cluster.completed = ++machine.clock;
    wake(cluster.waiters);
  }
}

void cluster_wait() {
  Fiber &fiber = *machine.current;
  Cluster &cluster = *fiber.block->cluster;
  if (!fiber.cluster_arrived) fault("wrong_result", "cluster_wait without cluster_arrive");
  while (cluster.phase == fiber.cluster_phase)
    suspend(cluster.waiters, [&cluster] {
      return text("the cluster barrier: %u of %zu threads are there", cluster.arrived,
                  cluster.blocks.size() * cluster.blocks[0]->fibers.size());
    });
  leave_barrier(cluster.completed);
  fiber.cluster_arrived = false;
  perhaps_preempt(at_meeting);
}

void set_registers(u32 count, bool up) {
  if (count < 24 || count > 256 || count % 8)
    fault("crash", "setmaxnreg to %u: 24 to 256 by 8 are allowed", count);
  by_warp("setmaxnreg", nullptr, [](void **) {});
  if (lane()) return;
  Warp &warp = *machine.current->warp;
  Block &block = *warp.block;
  if (up != (count >= warp.registers)) fault("crash", "setmaxnreg %s from %u to %u", up ? "up" : "down", warp.registers, count);
  const u32 needed = up ? (count - warp.registers) * 32 : 0;
  while (needed > block.spare_registers)
    suspend(block.register_waiters, [&block, needed] {
      return text("setmaxnreg: %u of %u registers are free", block.spare_registers, needed);
    });
  block.spare_registers += (warp.registers - count) * 32;  // wraps to the right sum
  warp.registers = count;
  wake(block.register_waiters);
}

u32 take_ticket(u32 *counter) {
  perhaps_preempt(at_access);
  check_global("take_ticket", counter, 4, 4, Use::flag);
  signal_stores();
  const u32 old = (*counter)++;
  acquire_stores();
  perhaps_preempt(at_meeting);
  return old;
}

void await_launches() { machine.current->awaited = true; }

void signal_global(u32 *flag, u32 value) {
  perhaps_preempt(at_meeting);
  check_global("signal_global", flag, 4, 4, Use::flag);
  signal_stores();
  *flag = value;
  if (const auto found = machine.flags.find(flag); found != machine.flags.end()) wake(found->second);
}

void wait_global(const u32 *flag, u32 value) {
  check_global("wait_global", flag, 4, 4, Use::flag);
  perhaps_preempt(at_meeting);
  while (*flag != value)
    suspend(machine.flags[flag], [flag, value] {
      return text("a flag in global memory to become %u; it is %u", value, *flag);
    });
  acquire_stores();
}

}  // namespace tw::emulator

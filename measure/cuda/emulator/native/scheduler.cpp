// Fibers and their order: who runs next, when asynchronous effects land, and what a deadlock is.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "machine.h"

namespace tw::emulator {

Machine machine;

namespace {

constexpr size_t stack_bytes = 128 << 10, page = 4096, stacks_at_once = 256;
constexpr int guard_install = 102;  // MADV_GUARD_INSTALL of Linux 6.13: needs no mapping of its own
constexpr u32 most_threads = 12 << 10;  // in flight: each takes two of the system's 64 K mappings

#if defined(__x86_64__)
extern "C" void tw_switch(void **save, void *load);
asm(R"(
.text
.globl tw_switch
tw_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#else
#error "the emulator's fibers are written for x86-64"
#endif

void fiber_main();

// A stack on which the first switch "returns" into fiber_main.
void *first_frame(char *stack) {
  void **top = (void **)(stack + stack_bytes - 64);
  *--top = nullptr;
  *--top = (void *)fiber_main;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  return top;
}

// Their lowest pages trap, so that none grows into the next.
void make_stacks() {
  void *made = mmap(nullptr, stacks_at_once * stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) fault("out_of_memory", "no memory for the stacks of more threads");
  for (size_t i = stacks_at_once; i-- > 0;) {
    char *stack = (char *)made + i * stack_bytes;
    if (madvise(stack, page, guard_install)) mprotect(stack, page, PROT_NONE);
    machine.stacks.push_back(stack);
  }
}

char *take_stack() {
  if (machine.stacks.empty()) make_stacks();
  char *stack = machine.stacks.back();
  machine.stacks.pop_back();
  return stack;
}

void leave() { tw_switch(&machine.current->stack_pointer, machine.main_stack_pointer); }

void end_thread(Fiber &fiber) {
  if (!fiber.stores.empty())
    fault("wrong_result", "a thread ends before tma_wait_read<0>() for its TMA stores");
  if (fiber.cluster_arrived) fault("wrong_result", "a thread ends between cluster_arrive and cluster_wait");
  fiber.copies.commit();
  fiber.copies.land(0);
  fiber.ended = true;
  Block &block = *fiber.block;
  block.cluster->alive--;
  if (--block.alive) return;
  for (auto &flight : block.cluster->flights)
    if (flight.second == &block) fault("wrong_result", "a block ends while its TMA load, or a store to it, is in flight");
  for (Warpgroup &group : block.warpgroups)
    if (!group.products.empty()) fault("wrong_result", "a block ends before wgmma_wait<0>()");
  for (u32 id = 0; id < std::size(block.named); id++)
    if (block.named[id].arrived)
      fault("wrong_result", "a block ends while named barrier %u is half used: %u of %u threads have arrived", id,
            block.named[id].arrived, block.named[id].threads);
}

void fiber_main() {
  machine.launch.entry(machine.launch.arguments.data());
  end_thread(*machine.current);
  leave();
  abort();
}

u32 new_priority(const Warp &warp) { return random_below(1 << 16) + (warp.lags ? 0 : 1 << 16); }

void start_block(Cluster &cluster, u32 rank, Index index) {
  const Launch &launch = machine.launch;
  auto &block = *cluster.blocks.emplace_back(std::make_unique<Block>());
  const u32 threads = launch.block.x * launch.block.y * launch.block.z;
  block.cluster = &cluster;
  block.rank = rank;
  block.index = index;
  block.alive = threads;
  block.memory.assign(launch.shared_bytes, 0xff);  // NaN in every floating-point type
  block.states.assign(launch.shared_bytes, unwritten);
  block.fibers.resize(threads);
  block.warps.resize(threads / 32);
  // what ptxas gives each thread of one block a multiprocessor; setmaxnreg redistributes those
  const u32 registers = std::min(65536 / threads / 8 * 8, 255u);
  const bool late = random_below(2);  // random mode: some blocks start after all others
  for (u32 i = 0; i < block.warps.size(); i++) {
    block.warps[i].block = &block;
    block.warps[i].index = i;
    block.warps[i].registers = registers;
    block.warps[i].lags = late;
    block.warps[i].priority = new_priority(block.warps[i]);
    block.warps[i].team.arguments.resize(32);
  }
  block.warpgroups.resize(threads / 128);
  for (Warpgroup &group : block.warpgroups) group.team.arguments.resize(128);
  for (u32 i = 0; i < threads; i++) {
    Fiber &fiber = block.fibers[i];
    fiber.linear = i;
    fiber.lane = i % 32;
    fiber.thread = {i % launch.block.x, i / launch.block.x % launch.block.y,
                    i / launch.block.x / launch.block.y};
    fiber.warp = &block.warps[i / 32];
    fiber.block = &block;
    fiber.stack = take_stack();
    fiber.stack_pointer = first_frame(fiber.stack);
    make_ready(&fiber);
  }
  cluster.alive += threads;
}

void check_launch() {
  const Index &grid = machine.launch.grid, &block = machine.launch.block, &cluster = machine.launch.cluster;
  const u64 threads = (u64)block.x * block.y * block.z;
  if (!threads || threads % 32 || threads > 1024)
    fault("device_error", "a block of %llu threads cannot be launched: whole warps, at most 1024", threads);
  if (cluster.x * cluster.y * cluster.z > 16)
    fault("device_error", "a cluster of %u blocks cannot be launched: at most 16", cluster.x * cluster.y * cluster.z);
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    fault("device_error", "a grid of (%u, %u, %u) blocks is not made of clusters of (%u, %u, %u)", grid.x,
          grid.y, grid.z, cluster.x, cluster.y, cluster.z);
}

bool start_cluster() {
  const Index &grid = machine.launch.grid, &size = machine.launch.cluster;
  const u32 blocks = size.x * size.y * size.z;
  if (machine.next_cluster == (u64)grid.x * grid.y * grid.z / blocks) return false;
  Cluster &cluster = machine.clusters.emplace_back();
  cluster.number = machine.next_cluster++;
  add_writers(cluster.number);
  for (u32 rank = 0; rank < blocks; rank++)
    start_block(cluster, rank, block_index_of(cluster.number, rank));
  return true;
}

bool room_for_cluster() {
  const Launch &launch = machine.launch;
  const Index &block = launch.block, &size = launch.cluster;
  const u32 threads = block.x * block.y * block.z * size.x * size.y * size.z;
  const size_t running = machine.clusters.size();
  return running == 0 || (running < launch.resident && (running + 1) * threads <= most_threads);
}

void retire_clusters() {
  for (auto cluster = machine.clusters.begin(); cluster != machine.clusters.end();) {
    if (cluster->alive) { ++cluster; continue; }
    for (auto &block : cluster->blocks)
      for (Fiber &fiber : block->fibers) machine.stacks.push_back(fiber.stack);
    cluster = machine.clusters.erase(cluster);
  }
}

// The oldest, or in random mode one of the warp of highest priority. Priorities change only when a
// thread is preempted, so that some warp may be left far behind all others: that is what shows a
// missing barrier (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of
// Finding Bugs, ASPLOS 2010).
Fiber *pick() {
  if (machine.mode == Mode::random) {
    if (machine.ready_warps.empty()) return nullptr;
    const auto highest = std::prev(machine.ready_warps.end());
    auto &ready = highest->second->ready;
    std::swap(ready[random_below(ready.size())], ready.back());
    Fiber *fiber = ready.back();
    ready.pop_back();
    if (ready.empty()) machine.ready_warps.erase(highest);
    return fiber;
  }
  if (machine.ready.empty()) return nullptr;
  Fiber *fiber = machine.ready.front();
  machine.ready.pop_front();
  return fiber;
}

void change_priority(Warp &warp) {
  if (!warp.ready.empty()) machine.ready_warps.erase({warp.priority, &warp});
  warp.priority = new_priority(warp);
  if (!warp.ready.empty()) machine.ready_warps.insert({warp.priority, &warp});
}

// Of the warps that a barrier releases one lags: it goes only when no other can, until it is
// released again. If the next barrier is missing, the others run into what it has yet to do.
void choose_laggard(const Waiters &released) {
  Warp *laggard = released[random_below(released.size())]->warp;
  for (Fiber *fiber : released) fiber->warp->lags = false;
  laggard->lags = true;
  for (Fiber *fiber : released)
    if (fiber->lane == 0) change_priority(*fiber->warp);
}

// Lets one TMA load or asynchronous store land: the oldest, or any in random mode, where they are unordered.
bool land_one() {
  std::vector<Cluster *> pending;
  for (Cluster &cluster : machine.clusters)
    if (!cluster.flights.empty()) pending.push_back(&cluster);
  if (pending.empty()) return false;
  const bool random = machine.mode == Mode::random;
  auto &flights = pending[random ? random_below(pending.size()) : 0]->flights;
  if (random) std::swap(flights.front(), flights[random_below(flights.size())]);
  Effect effect = std::move(flights.front().first);
  flights.pop_front();
  effect();
  return true;
}

}  // namespace

u32 random_below(u32 bound) {
  u32 &x = machine.random_state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return u32((u64)x * bound >> 32);
}

void run() {
  check_launch();
  for (;;) {
    while (room_for_cluster() && start_cluster()) {}
    if (machine.clusters.empty()) return;
    if (machine.mode == Mode::random && random_below(8) == 0) land_one();
    Fiber *fiber = pick();
    if (!fiber) {
      if (!land_one()) deadlock();
      continue;
    }
    machine.current = fiber;
    machine.switches++;
    tw_switch(&machine.main_stack_pointer, fiber->stack_pointer);
    machine.current = nullptr;
    if (fiber->ended && fiber->block->cluster->alive == 0) retire_clusters();
  }
}

void suspend(Waiters &waiters, std::function<std::string()> waits_for) {
  Fiber *fiber = machine.current;
  fiber->waits_for = std::move(waits_for);
  waiters.push_back(fiber);
  leave();
}

void wake(Waiters &waiters) {
  const bool several = !waiters.empty() && waiters.front()->warp != waiters.back()->warp;
  if (machine.mode == Mode::random && several) choose_laggard(waiters);
  for (Fiber *fiber : waiters) make_ready(fiber);
  waiters.clear();
}

void make_ready(Fiber *fiber) {
  if (machine.mode != Mode::random) return machine.ready.push_back(fiber);
  Warp &warp = *fiber->warp;
  if (warp.ready.empty()) machine.ready_warps.insert({warp.priority, &warp});
  warp.ready.push_back(fiber);
}

void perhaps_preempt(u32 chance) {
  if (machine.mode != Mode::random || random_below(chance)) return;
  change_priority(*machine.current->warp);
  make_ready(machine.current);
  leave();
}

bool now(Async effect) {
  if (machine.mode != Mode::random) return machine.mode == Mode::eager;
  if (effect == Async::load && machine.seed & 1) return true;
  if (effect == Async::product && machine.seed & 2) return false;
  return random_below(3) == 0;
}

Index block_index_of(u64 cluster, u32 rank) {
  const Index &grid = machine.launch.grid, &size = machine.launch.cluster;
  const u64 across = grid.x / size.x, down = grid.y / size.y;
  return {u32(cluster % across) * size.x + rank % size.x, u32(cluster / across % down) * size.y + rank / size.x % size.y,
          u32(cluster / across / down) * size.z + rank / size.x / size.y};
}

void Groups::land(size_t keep) {
  while (closed.size() > keep) {
    std::vector<Effect> group = std::move(closed.front());
    closed.pop_front();
    for (Effect &effect : group) effect();
  }
}

const Index &thread_index() { return machine.current->thread; }
const Index &block_index() { return machine.current->block->index; }
const Index &block_size() { return machine.launch.block; }
const Index &grid_size() { return machine.launch.grid; }
u32 lane() { return machine.current->lane; }
u32 cluster_rank() { return machine.current->block->rank; }

}  // namespace tw::emulator

// The order of threads: who runs next, when asynchronous effects land, and what a deadlock is.
#include <utility>

#include "machine.h"

namespace tw::emulator {

Machine machine;

namespace {

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

u32 new_priority(const Warp &warp) { return random_below(1 << 16) + (warp.lags ? 0 : 1 << 16); }

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
    enter(*fiber);
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

void Groups::land(size_t keep) {
  while (closed.size() > keep) {
    std::vector<Effect> group = std::move(closed.front());
    closed.pop_front();
    for (Effect &effect : group) effect();
  }
}

}  // namespace tw::emulator

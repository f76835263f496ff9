// The blocks of a launch: which may start, what their threads begin with, and how they end.
#include <algorithm>

#include "machine.h"

namespace tw::emulator {

namespace {

constexpr u32 most_threads = 12 << 10;  // in flight: each takes two of the system's 64 K mappings

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
    fiber.number = (cluster.number * launch.cluster.x * launch.cluster.y * launch.cluster.z + rank) * threads + i;
    fiber.lane = i % 32;
    fiber.thread = {i % launch.block.x, i / launch.block.x % launch.block.y,
                    i / launch.block.x / launch.block.y};
    fiber.warp = &block.warps[i / 32];
    fiber.block = &block;
    give_stack(fiber);
    make_ready(&fiber);
  }
  cluster.alive += threads;
}

}  // namespace

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

Index block_index_of(u64 cluster, u32 rank) {
  const Index &grid = machine.launch.grid, &size = machine.launch.cluster;
  const u64 across = grid.x / size.x, down = grid.y / size.y;
  return {u32(cluster % across) * size.x + rank % size.x, u32(cluster / across % down) * size.y + rank / size.x % size.y,
          u32(cluster / across / down) * size.z + rank / size.x / size.y};
}

const Index &thread_index() { return machine.current->thread; }
const Index &block_index() { return machine.current->block->index; }
const Index &block_size() { return machine.launch.block; }
const Index &grid_size() { return machine.launch.grid; }
u32 lane() { return machine.current->lane; }
u32 cluster_rank() { return machine.current->block->rank; }

}  // namespace tw::emulator

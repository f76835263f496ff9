// Global and shared memory: every access is checked for its bounds, alignment and history.
#include <cstring>

#include "machine.h"

namespace tw::emulator {

namespace {

const Buffer &nearest(const char *at) {
  const Buffer *best = nullptr;
  u64 distance = ~0ull;
  for (const Buffer &buffer : machine.buffers) {
    u64 d = at < buffer.base ? buffer.base - at
                             : at < buffer.base + buffer.bytes ? 0 : at - (buffer.base + buffer.bytes) + 1;
    if (d < distance) { distance = d; best = &buffer; }
  }
  return *best;
}

u32 natural_alignment(u32 bytes) { return bytes < 16 ? bytes : 16; }

void touch(Block &block, u32 offset, u32 bytes, State state) {
  memset(&block.states[offset], state, bytes);
}

// Whether eight bytes are all written or, for an ordinary load, fresh: of the states 0 to 3, those whose
// two bits differ.
bool all_readable(const State *states, bool asynchronous) {
  constexpr u64 ones = 0x0101010101010101;
  u64 x;
  memcpy(&x, states, 8);
  return asynchronous ? x == ones : ((x ^ x >> 1) & ones) == ones;
}

// An ordinary store: not yet visible to TMA and wgmma, until the writer's fence_async.
u8 *store_target(const char *what, Block &block, u32 address, u32 bytes) {
  u8 *to = writable(what, block, address, bytes, fresh);
  auto &ranges = machine.current->fresh;
  const u32 offset = to - block.memory.data();
  if (&block != machine.current->block) return to;
  if (!ranges.empty() && ranges.back().first + ranges.back().second == offset) ranges.back().second += bytes;
  else ranges.emplace_back(offset, bytes);
  if (ranges.size() > 4096) ranges.clear();  // a kernel without async reads never fences
  return to;
}

}  // namespace

void check_global(const char *what, const void *at, u32 bytes, u32 alignment, Use use) {
  static size_t last = 0;
  const char *p = (const char *)at;
  if (machine.launch.early && machine.current && !machine.current->awaited)
    fault("wrong_result", "%s before await_launches(), in a launch that may begin before the last has ended", what);
  for (size_t i = 0; i < machine.buffers.size(); i++) {
    const size_t j = (last + i) % machine.buffers.size();
    Buffer &buffer = machine.buffers[j];
    if (p < buffer.base || p + bytes > buffer.base + buffer.bytes) continue;
    last = j;
    if (use != Use::load && !buffer.writable)
      fault("wrong_result", "%s writes to input %s", what, buffer.name.c_str());
    if ((u64)p % alignment)
      fault("crash", "%s of %u bytes is misaligned at byte %lld of %s", what, bytes,
            (i64)(p - buffer.base), buffer.name.c_str());
    if (!buffer.writable || use == Use::flag) return;
    if (use == Use::load) check_load(what, buffer, p - buffer.base, bytes);
    else note_store(buffer, p - buffer.base, bytes, use == Use::addition);
    return;
  }
  const Buffer &buffer = nearest(p);
  fault("out_of_bounds", "%s of %u bytes at byte %lld of %s, which has %llu", what, bytes,
        (i64)(p - buffer.base), buffer.name.c_str(), buffer.bytes);
}

void global_load(void *to, const void *from, u32 bytes) {
  const u32 piece = bytes < 16 ? bytes : 16;
  perhaps_preempt(at_access);
  for (u32 i = 0; i < bytes; i += piece) check_global("load_global", (const char *)from + i, piece, piece, Use::load);
  memcpy(to, from, bytes);
}

void global_store(void *to, const void *from, u32 bytes) {
  const u32 piece = bytes < 16 ? bytes : 16;
  perhaps_preempt(at_access);
  for (u32 i = 0; i < bytes; i += piece) check_global("store_global", (char *)to + i, piece, piece, Use::store);
  memcpy(to, from, bytes);
}

void global_atomic(const void *at, u32 bytes) {
  perhaps_preempt(at_access);
  check_global("atomic_add", at, bytes, bytes, Use::addition);
}

u32 offset_of(const char *what, Block &block, u32 address, u32 bytes, u32 alignment) {
  const u32 offset = (address & ((1u << rank_shift) - 1)) - shared_start;
  if (offset > block.memory.size() || bytes > block.memory.size() - offset)
    fault("out_of_bounds", "%s of %u bytes at byte %d of shared memory, which has %zu", what, bytes,
          (i32)offset, block.memory.size());
  if (address % alignment)
    fault("crash", "%s at byte %u of shared memory is not aligned to %u bytes", what, offset, alignment);
  return offset;
}

Block &owner(const char *what, u32 address, bool remote) {
  Block &mine = *machine.current->block;
  const u32 rank = address >> rank_shift;
  if (rank == mine.rank) return mine;
  if (!remote) fault("crash", "%s of an address in another block's shared memory", what);
  if (rank >= mine.cluster->blocks.size()) fault("crash", "%s of an address of no block", what);
  Block &block = *mine.cluster->blocks[rank];
  if (!block.alive) fault("crash", "%s of the shared memory of a block that has ended", what);
  return block;
}

const u8 *readable(const char *what, Block &block, u32 address, u32 bytes, bool asynchronous) {
  const u32 offset = offset_of(what, block, address, bytes, natural_alignment(bytes));
  const State *states = &block.states[offset];
  const bool wide = bytes % 8 == 0;
  for (u32 i = 0; i < bytes; i++) {
    if (wide && i % 8 == 0 && all_readable(states + i, asynchronous)) {
      i += 7;
      continue;
    }
    if (states[i] == written) continue;
    if (states[i] == unwritten)
      fault("wrong_result", "%s reads uninitialised shared memory at byte %u", what, offset + i);
    if (states[i] == barrier_word)
      fault("wrong_result", "%s reads an mbarrier at byte %u of shared memory", what, offset + i);
    if (asynchronous)
      fault("wrong_result", "%s reads byte %u of shared memory, stored without a fence_async() since",
            what, offset + i);
  }
  return &block.memory[offset];
}

u8 *writable(const char *what, Block &block, u32 address, u32 bytes, State state) {
  const u32 offset = offset_of(what, block, address, bytes, natural_alignment(bytes));
  if (memchr(&block.states[offset], barrier_word, bytes))
    fault("wrong_result", "%s overwrites an mbarrier near byte %u of shared memory", what, offset);
  touch(block, offset, bytes, state);
  return &block.memory[offset];
}

u32 shared_base() { return machine.current->block->rank << rank_shift | shared_start; }

void shared_load(void *to, u32 from, u32 bytes, bool remote) {
  perhaps_preempt(at_access);
  const char *what = remote ? "load_remote" : "load_shared";
  const u32 piece = bytes < 16 ? bytes : 16;
  Block &block = owner(what, from, remote);
  for (u32 i = 0; i < bytes && !remote; i += piece) note_access(from + i, piece);
  for (u32 i = 0; i < bytes; i += piece)
    memcpy((char *)to + i, readable(what, block, from + i, piece, false), piece);
}

void shared_store(u32 to, const void *from, u32 bytes, bool remote) {
  perhaps_preempt(at_access);
  const char *what = remote ? "store_remote" : "store_shared";
  const u32 piece = bytes < 16 ? bytes : 16;
  Block &block = owner(what, to, remote);
  for (u32 i = 0; i < bytes && !remote; i += piece) note_access(to + i, piece);
  for (u32 i = 0; i < bytes; i += piece)
    memcpy(store_target(what, block, to + i, piece), (const char *)from + i, piece);
}

void store_async(u32 to, const void *from, u32 bytes, u32 barrier) {
  const char *what = "store_async";
  perhaps_preempt(at_access);
  Block &block = owner(what, to, true);
  if (&owner(what, barrier, true) != &block) fault("crash", "store_async to one block and a barrier of another");
  if (block.cluster->blocks.size() == 1) fault("crash", "store_async in a cluster of one block");
  offset_of(what, block, to, bytes, bytes);
  std::vector<u8> data((const u8 *)from, (const u8 *)from + bytes);
  const bool remote = &block != machine.current->block;
  Effect effect = [=, &block] {
    memcpy(writable(what, block, to, data.size(), fresh), data.data(), data.size());
    complete_bytes(what, block, barrier, data.size(), remote);
  };
  if (now(Async::load)) effect();
  else block.cluster->flights.emplace_back(std::move(effect), &block);
}

u32 map_shared(u32 address, u32 rank) {
  const Block &mine = *machine.current->block;
  if (rank >= mine.cluster->blocks.size())
    fault("crash", "map_shared to rank %u of a cluster of %zu blocks", rank, mine.cluster->blocks.size());
  return (address & ((1u << rank_shift) - 1)) | rank << rank_shift;
}

void fence_async() {
  Fiber &fiber = *machine.current;
  for (auto [offset, bytes] : fiber.fresh)
    for (u32 i = offset; i < offset + bytes; i++)
      if (fiber.block->states[i] == fresh) fiber.block->states[i] = written;
  fiber.fresh.clear();
}

void cp_async(u32 to, const void *from, u32 bytes, u32 valid) {
  perhaps_preempt(at_access);
  Block &block = owner("cp_async", to, false);
  if (valid > bytes) fault("crash", "cp_async of %u valid bytes of %u", valid, bytes);
  offset_of("cp_async", block, to, bytes, bytes);
  note_access(to, bytes);
  if (valid) check_global("cp_async", from, valid, bytes, Use::load);
  Block *target = &block;
  Effect effect = [=] {
    u8 *p = store_target("cp_async", *target, to, bytes);
    memcpy(p, from, valid);
    memset(p + valid, 0, bytes - valid);
  };
  if (now(Async::copy)) effect();
  else machine.current->copies.open.push_back(std::move(effect));
}

void cp_async_commit() { machine.current->copies.commit(); }

void cp_async_wait(u32 pending) {
  machine.current->copies.land(pending);
  perhaps_preempt(at_meeting);
}

}  // namespace tw::emulator

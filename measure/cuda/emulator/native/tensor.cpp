// TMA: boxes of tensors to and from shared memory, clipped and swizzled.
#include <algorithm>
#include <array>
#include <cstring>

#include "machine.h"

namespace tw::emulator {

namespace {

using Row = std::function<void(u32 offset, char *from, u32 before, u32 inside, u32 bytes)>;

// Visits the rows of a box: `offset` in the dense box, the row's bytes in the tensor, of which
// `inside` exist, after `before` that do not.
void rows(const TensorMap &map, const i32 *at, const Row &visit) {
  const u32 element = map.element_bytes, bytes = map.box[0] * element;
  const i64 first = at[0], end = first + map.box[0], size = map.dims[0];
  const i64 low = first < 0 ? 0 : first, high = end > size ? size : end;
  u32 count = 1, step[5] = {};
  for (u32 d = 1; d < map.rank; d++) count *= map.box[d];
  for (u32 row = 0; row < count; row++) {
    u64 address = map.base;
    bool inside = high > low;
    for (u32 d = 1; d < map.rank; d++) {
      const i64 position = (i64)at[d] + step[d];
      inside = inside && position >= 0 && position < (i64)map.dims[d];
      address += position * map.strides[d - 1];
    }
    const u32 before = inside ? (low - first) * element : 0;
    visit(row * bytes, (char *)(address + first * element), before, inside ? (high - low) * element : 0, bytes);
    for (u32 d = 1; d < map.rank && ++step[d] == map.box[d]; d++) step[d] = 0;
  }
}

// Visits pixels one after the other, as rows of a box: each goes on along the first dimension with
// corners that has room.
void pixels(const TensorMap &map, const i32 *at, const Row &visit) {
  const u32 element = map.element_bytes, bytes = map.box[0] * element, last = map.rank - 1;
  const i64 first = at[0], end = first + map.box[0], size = map.dims[0];
  const i64 low = first < 0 ? 0 : first, high = end > size ? size : end;
  i64 pixel[5] = {};
  for (u32 d = 1; d <= last; d++) pixel[d] = at[d];
  for (u32 row = 0; row < map.box[1]; row++) {
    u64 address = map.base;
    bool inside = high > low;
    for (u32 d = 1; d <= last; d++) {
      const i64 position = pixel[d] + (d < last ? at[last + d] : 0);
      inside = inside && position >= 0 && position < (i64)map.dims[d];
      address += position * map.strides[d - 1];
    }
    const u32 before = inside ? (low - first) * element : 0;
    visit(row * bytes, (char *)(address + first * element), before, inside ? (high - low) * element : 0, bytes);
    for (u32 d = 1;; pixel[d] = map.lower[d - 1], d++) {
      pixel[d] += d < last ? map.steps[d - 1] : 1;
      if (d == last || pixel[d] < (i64)map.dims[d] + map.upper[d - 1]) break;
    }
  }
}

u32 swizzled(u32 address, u32 swizzle) {
  const u32 mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
  return address ^ ((address >> 7) & mask) << 4;
}

u32 box_bytes(const TensorMap &map) {
  u32 bytes = map.element_bytes;
  for (u32 d = 0; d < (map.windows ? 2 : map.rank); d++) bytes *= map.box[d];
  return bytes;
}

void check_box(const char *what, const TensorMap &map, u32 address, u32 rank, Block &block) {
  if (map.rank != rank) fault("crash", "%s of %u dimensions with a tensor map of %u", what, rank, map.rank);
  offset_of(what, block, address, box_bytes(map), 128);
}

void load_box(const TensorMap &map, Block &block, u32 to, const i32 *at) {
  (map.windows ? pixels : rows)(map, at, [&](u32 offset, char *from, u32 before, u32 inside, u32 bytes) {
    u8 row[256 * 8] = {};
    if (inside) {
      check_global("a TMA load", from + before, inside, 1, Use::load);
      memcpy(row + before, from + before, inside);
    }
    for (u32 i = 0; i < bytes; i += 16)
      memcpy(writable("a TMA load", block, swizzled(to + offset + i, map.swizzle), 16, written), row + i, 16);
  });
}

template <class T> void add(char *to, const u8 *from, u32 bytes) {
  for (u32 i = 0; i < bytes; i += sizeof(T)) {
    T sum, term;
    memcpy(&sum, to + i, sizeof(T));
    memcpy(&term, from + i, sizeof(T));
    sum += term;
    memcpy(to + i, &sum, sizeof(T));
  }
}

void add_row(Kind kind, char *to, const u8 *from, u32 bytes) {
  if (kind == Kind::f32) return add<float>(to, from, bytes);
  if (kind == Kind::f64) return add<double>(to, from, bytes);
  if (kind == Kind::s32) return add<i32>(to, from, bytes);
  if (kind != Kind::f16 && kind != Kind::bf16) fault("crash", "tma_add of a type that has none");
  for (u32 i = 0; i < bytes; i += 2) {
    u16 a, b;
    memcpy(&a, to + i, 2);
    memcpy(&b, from + i, 2);
    auto wide = [&](u16 x) { return kind == Kind::f16 ? f16_to_float(x) : __builtin_bit_cast(float, (u32)x << 16); };
    const float sum = wide(a) + wide(b);
    a = kind == Kind::f16 ? float_to_f16(sum) : float_to_bf16(sum);
    memcpy(to + i, &a, 2);
  }
}

// What lies beyond the array is not stored: nobody needs to have written it.
void store_box(const TensorMap &map, Block &block, u32 source, bool adding, const i32 *at) {
  const char *what = adding ? "a TMA addition" : "a TMA store";
  rows(map, at, [&](u32 offset, char *to, u32 before, u32 inside, u32 bytes) {
    u8 row[256 * 8];
    for (u32 i = 0; i < bytes; i += 16) {
      const u32 low = std::max(i, before), high = std::min(i + 16, before + inside);
      if (low >= high) continue;
      const u32 from = swizzled(source + offset + i, map.swizzle) + low - i;
      memcpy(row + low, readable(what, block, from, high - low, true), high - low);
    }
    if (!inside) return;
    check_global(what, to + before, inside, 1, adding ? Use::addition : Use::store);
    if (adding) add_row((Kind)map.kind, to + before, row + before, inside);
    else memcpy(to + before, row + before, inside);
  });
}

// Where a box begins, in as many dimensions as there may be, and offsets of pixels.
std::array<i32, 8> place(const i32 *at, u32 count) {
  std::array<i32, 8> first{};
  std::copy_n(at, count, first.begin());
  return first;
}

}  // namespace

void tma_load(u32 to, const TensorMap *map, u32 barrier, const u16 *ranks, u32 rank, const i32 *at, bool windows) {
  Block &mine = owner("a TMA load", to, false);
  if (windows != (map->windows > 0)) fault("crash", "a TMA load of another kind than its tensor map");
  check_box("a TMA load", *map, to, rank, mine);
  const u32 mask = ranks ? *ranks : 1u << mine.rank, blocks = mine.cluster->blocks.size();
  if (mask >> blocks || !mask) fault("crash", "a TMA load to ranks 0x%x of a cluster of %u blocks", mask, blocks);
  Cluster &cluster = *mine.cluster;
  for (u32 target = 0; target < blocks; target++) {
    if (!(mask >> target & 1)) continue;
    Effect effect = [tensor = *map, &cluster, to, barrier, target, first = place(at, rank + map->windows)] {
      Block &block = *cluster.blocks[target];
      if (!block.alive) fault("wrong_result", "a TMA load arrives in a block that has ended");
      load_box(tensor, block, to, first.data());
      complete_bytes("a TMA load", block, barrier, box_bytes(tensor), false);
    };
    if (now(Async::load)) effect();
    else cluster.flights.emplace_back(std::move(effect), &mine);
  }
  perhaps_preempt(at_meeting);
}

void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier) {
  const char *what = "bulk_load";
  Block &block = owner(what, to, false);
  if (bytes % 16 || (u64)from % 16) fault("crash", "bulk_load of %u bytes: it moves 16 at a time", bytes);
  offset_of(what, block, to, bytes, 16);
  check_global(what, from, bytes, 16, Use::load);
  Effect effect = [=, &block] {
    if (!block.alive) fault("wrong_result", "bulk_load arrives in a block that has ended");
    for (u32 i = 0; i < bytes; i += 16)
      memcpy(writable(what, block, to + i, 16, written), (const char *)from + i, 16);
    complete_bytes(what, block, barrier, bytes, false);
  };
  if (now(Async::load)) effect();
  else block.cluster->flights.emplace_back(std::move(effect), &block);
  perhaps_preempt(at_meeting);
}

void tma_store(const TensorMap *map, u32 from, bool add, u32 rank, const i32 *at) {
  Block &block = owner("a TMA store", from, false);
  check_box("a TMA store", *map, from, rank, block);
  Effect effect = [tensor = *map, &block, from, add, first = place(at, rank)] {
    store_box(tensor, block, from, add, first.data());
  };
  if (now(Async::copy)) {
    effect();
    effect = [] {};  // it still counts as a store to be waited for
  }
  machine.current->stores.open.push_back(std::move(effect));
  perhaps_preempt(at_meeting);
}

void tma_commit() { machine.current->stores.commit(); }

void tma_wait(u32 pending) {
  machine.current->stores.land(pending);
  perhaps_preempt(at_meeting);
}

}  // namespace tw::emulator

// The emulated machine: fibers for threads, and what warps, blocks, clusters and the device hold.
#pragma once
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <set>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime.h"

namespace tw::emulator {

struct Fiber;
struct Block;
struct Cluster;

enum class Mode { eager, lazy, random };
// What may be known of a byte of shared memory. `fresh`: written by an ordinary store that no
// fence_async has yet made visible to TMA and wgmma.
enum State : u8 { unwritten = 0, written = 1, fresh = 2, barrier_word = 3 };

constexpr u32 shared_start = 1024;  // the first bytes belong to the system, as on the device
constexpr u32 rank_shift = 24;      // bits of an address above it: rank of the block in its cluster

using Waiters = std::vector<Fiber *>;
using Effect = std::function<void()>;

// Groups of effects that land late: cp.async, TMA stores, wgmma.
struct Groups {
  std::vector<Effect> open;
  std::deque<std::vector<Effect>> closed;
  void commit() { closed.push_back(std::move(open)); open.clear(); }
  void land(size_t keep);  // all but the newest `keep` groups
  bool empty() const { return open.empty() && closed.empty(); }
};

struct Mbarrier {
  i32 pending = 0, arrivals = 0, bytes = 0;
  u32 phase = 0, completed = 0;  // completed: when, by machine.clock; so in the others
  bool visible = false;  // fence_barrier_init has followed its initialisation
  bool remote = false;   // another block's store has completed bytes
  Waiters waiters;
};

struct NamedBarrier {
  u32 arrived = 0, threads = 0, generation = 0, completed = 0;
  Waiters waiters;
};

// Threads that execute an instruction together: a warp, or a warpgroup for wgmma.
struct Team {
  std::vector<void *> arguments;  // one a thread
  u32 arrived = 0, generation = 0, completed = 0;
  const char *instruction = nullptr;
  Waiters waiters;
};

// wgmma of one warpgroup starts once its four warps have issued it, and completes for all at once.
struct Warpgroup {
  Team team;
  Groups products;
  bool fenced = false;
};

// One access to shared memory that a warp's lanes make together, after that meeting of theirs.
struct Access {
  u32 meeting = 0, lanes = 0, addresses[32] = {};
};

struct Warp {
  Block *block = nullptr;
  u32 index = 0, registers = 0, priority = 0;
  bool lags = false;  // random mode: its priority is below that of all that do not
  Team team;
  std::vector<Access> accesses;  // by their number since the lanes last met
  std::vector<Fiber *> ready;    // random mode only
};

// For visibility.cpp. All times are by machine.clock.
// Who stored to a byte of global memory, and when.
struct Mark {
  u32 thread = 0, time = 0;  // thread: one more than its number, or 0 for nobody
};

// The last store to a byte, and an earlier addition to it by another cluster that was not yet fenced.
struct Marks {
  Mark last, other;
};

// Of one thread: its last fence, its last ticket or signal, the completion of the last barrier that
// it has left.
struct Writer {
  u32 fenced = 0, signalled = 0, passed = 0;
};

// Of one cluster: before when its stores are fenced, and signalled, by threads that have met those
// that made them; and before when others' stores may be read.
struct Order {
  u32 fenced = 0, signalled = 0, acquired = 0;
};

struct Fiber {
  void *stack_pointer = nullptr;
  char *stack = nullptr;
  Index thread{};
  u32 linear = 0, number = 0, lane = 0, meetings = 0, accesses = 0;  // number: in the grid
  bool ended = false, cluster_arrived = false, awaited = false;
  u32 cluster_phase = 0;
  Warp *warp = nullptr;
  Block *block = nullptr;
  std::function<std::string()> waits_for;
  Groups copies, stores;
  std::vector<std::pair<u32, u32>> fresh;  // (offset, bytes) this thread wrote since its last fence
};

struct Block {
  Cluster *cluster = nullptr;
  u32 rank = 0, alive = 0, spare_registers = 0;
  Index index{};
  std::vector<u8> memory;
  std::vector<State> states;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  NamedBarrier named[16];
  std::unordered_map<u32, Mbarrier> mbarriers;  // by offset
  Waiters register_waiters;
};

struct Cluster {
  u32 number = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  u32 alive = 0, arrived = 0, phase = 0, completed = 0;
  Waiters waiters;
  std::deque<std::pair<Effect, Block *>> flights;  // TMA loads and asynchronous stores under way, each with
                                                   // the block that must not end before it lands
};

struct Buffer {
  std::string name;
  char *base;
  u64 bytes;
  bool writable;
  std::vector<Marks> marks{};  // one a byte, from its first store on
};

struct Launch {
  Index grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  u32 shared_bytes = 0, resident = 1;
  bool early = false;  // may begin while the launches before it run
  void (*entry)(void **) = nullptr;
  std::vector<void *> arguments;
};

struct Machine {
  Mode mode = Mode::eager;
  u32 seed = 0, random_state = 1;
  Launch launch;
  std::vector<Buffer> buffers;
  std::list<Cluster> clusters;
  std::deque<Fiber *> ready;                        // eager and lazy mode: the oldest goes first
  std::set<std::pair<u32, Warp *>> ready_warps;     // random mode: by priority
  std::vector<char *> stacks;
  std::unordered_map<const u32 *, Waiters> flags;  // wait_global
  void *main_stack_pointer = nullptr;
  Fiber *current = nullptr;
  u64 switches = 0, next_cluster = 0;
  u32 clock = 0;                // rises with each fence, signal and completed barrier
  std::vector<Writer> writers;  // by thread of the grid
  std::vector<Order> orders;    // by cluster
  u64 phases = 0, wavefronts = 0;  // of shared memory: what is least, what it took
};
extern Machine machine;

// Threads: a stack for each, and the switches into one and back to the scheduler.
void give_stack(Fiber &fiber);
void enter(Fiber &fiber);
void leave();

// Blocks of the launch.
void check_launch();
bool room_for_cluster();
bool start_cluster();  // whether there is one more
void retire_clusters();
void end_thread(Fiber &fiber);
Index block_index_of(u64 cluster, u32 rank);

u32 random_below(u32 bound);
void run();                // the whole launch
void suspend(Waiters &waiters, std::function<std::string()> waits_for);
void wake(Waiters &waiters);
void make_ready(Fiber *fiber);
u32 new_priority(const Warp &warp);
// Random mode: lets another thread go first, once in `chance` calls.
constexpr u32 at_access = 32, at_meeting = 4;
void perhaps_preempt(u32 chance);
// Whether an asynchronous effect lands as it is issued. Odd seeds of random mode never delay
// loads; those with bit 1 always delay products: together they show a stage released too early.
enum class Async { copy, load, product };
bool now(Async effect);

// Ends the process with a report: `kind` is an ErrorKind's value, the place is appended.
[[noreturn, gnu::format(printf, 2, 3)]] void fault(const char *kind, const char *format, ...);
[[noreturn]] void deadlock();  // says who waits for what
std::string place(const Fiber &fiber);
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Runs `operation` on all threads' arguments once the whole warp or warpgroup has come to the
// same instruction.
using Operation = std::function<void(void **)>;
void by_warp(const char *instruction, void *argument, const Operation &operation);
void by_warpgroup(const char *instruction, void *argument, const Operation &operation);

// Shared memory of `block` at `address`, checked; `fault`s name `what`.
u32 offset_of(const char *what, Block &block, u32 address, u32 bytes, u32 alignment);
Block &owner(const char *what, u32 address, bool remote);
const u8 *readable(const char *what, Block &block, u32 address, u32 bytes, bool asynchronous);
u8 *writable(const char *what, Block &block, u32 address, u32 bytes, State state);
// How global memory is used: `flag` is what orders other accesses and needs no order itself.
enum class Use { load, store, addition, flag };
void check_global(const char *what, const void *at, u32 bytes, u32 alignment, Use use);

// Who may see which stores to global memory: see visibility.cpp.
void add_writers(u32 cluster);
void note_store(Buffer &buffer, u64 offset, u32 bytes, bool addition);
void check_load(const char *what, const Buffer &buffer, u64 offset, u32 bytes);
void leave_barrier(u32 completed);
void signal_stores();
void acquire_stores();  // those that others have signalled

// What the banks of shared memory have to do, counted in eager mode.
void note_access(u32 address, u32 bytes);
void note_meeting();
void count_wavefronts(const u32 *addresses, u32 lanes, u32 bytes);

void complete_bytes(const char *what, Block &block, u32 barrier, u32 bytes, bool remote);

}  // namespace tw::emulator

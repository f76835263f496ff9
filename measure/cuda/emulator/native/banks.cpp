// Bank conflicts of shared memory: how many wavefronts a warp's accesses take, and how many would do.
#include <algorithm>

#include "machine.h"

namespace tw::emulator {

namespace {

constexpr u32 banks = 32, word = 4;

// Wavefronts of one phase of at most 32 words: the most distinct ones that lanes want of one bank.
u32 wavefronts(const u32 *addresses, u32 lanes, u32 bytes) {
  u32 wanted[banks], count = 0, load[banks] = {}, most = 0;
  for (u32 lane = 0; lane < lanes; lane++)
    for (u32 i = 0; i < std::max(bytes, word); i += word) {
      const u32 at = (addresses[lane] + i) / word;
      if (std::find(wanted, wanted + count, at) != wanted + count) continue;
      wanted[count++] = at;
      most = std::max(most, ++load[at % banks]);
    }
  return most;
}

}  // namespace

// Wide accesses go in phases of as many lanes as fill the 128 bytes of all banks.
void count_wavefronts(const u32 *addresses, u32 lanes, u32 bytes) {
  const u32 phase = bytes <= word ? 32 : bytes == 8 ? 16 : 8;
  for (u32 first = 0; first < lanes; first += phase) {
    machine.phases++;
    machine.wavefronts += wavefronts(addresses + first, std::min(phase, lanes - first), bytes);
  }
}

// A warp's lanes run one by one here: the accesses that have the same number since the last
// meeting of the warp were one instruction. Those that not all lanes make are not counted.
void note_access(u32 address, u32 bytes) {
  if (machine.mode != Mode::eager) return;
  Fiber &fiber = *machine.current;
  auto &accesses = fiber.warp->accesses;
  if (fiber.accesses == accesses.size()) accesses.emplace_back();
  Access &access = accesses[fiber.accesses++];
  if (access.meeting != fiber.meetings) access = {fiber.meetings, 0, {}};
  access.addresses[fiber.lane] = address;
  if (++access.lanes == 32) count_wavefronts(access.addresses, 32, bytes);
}

void note_meeting() {
  Fiber &fiber = *machine.current;
  fiber.meetings++;
  fiber.accesses = 0;
}

}  // namespace tw::emulator

// Fibers: a stack for each thread, and the switches between them and the scheduler.
#include <sys/mman.h>

#include <cstdlib>

#include "machine.h"

namespace tw::emulator {

namespace {

constexpr size_t stack_bytes = 128 << 10, page = 4096, stacks_at_once = 256;
constexpr int guard_install = 102;  // MADV_GUARD_INSTALL of Linux 6.13: needs no mapping of its own

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

void fiber_main() {
  machine.launch.entry(machine.launch.arguments.data());
  end_thread(*machine.current);
  leave();
  abort();
}

}  // namespace

void give_stack(Fiber &fiber) {
  fiber.stack = take_stack();
  fiber.stack_pointer = first_frame(fiber.stack);
}

void enter(Fiber &fiber) { tw_switch(&machine.main_stack_pointer, fiber.stack_pointer); }
void leave() { tw_switch(&machine.current->stack_pointer, machine.main_stack_pointer); }

}  // namespace tw::emulator

#include "engine/fiber.h"

#include <ucontext.h>

#include <cstring>

namespace bamtrain::engine {

#ifdef BAMTRAIN_ENGINE_UCONTEXT

void prepare(Context& context, char* bottom, char* top, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = bottom;
  context.state.uc_stack.ss_size = static_cast<size_t>(top - bottom);
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

// The handler never returns: setcontext also restores the signal mask that was saved with `to`.
void resume_after_signal(void*, Context& to) { setcontext(&to.state); }

#else

// The stack holds the callee-saved registers below the return address.
extern "C" void bamtrain_engine_switch(void** save, void* to);
asm(R"(
.text
.globl bamtrain_engine_switch
.type bamtrain_engine_switch, @function
bamtrain_engine_switch:
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
.size bamtrain_engine_switch, . - bamtrain_engine_switch
)");

void prepare(Context& context, char*, char* top, void (*entry)()) {
  // Six registers, the entry as return address, and a zero in place of its caller's return address.
  // The entry starts with the stack pointer at 8 modulo 16, as after a call.
  void* frame[8] = {};
  frame[6] = reinterpret_cast<void*>(entry);
  std::memcpy(top - sizeof frame, frame, sizeof frame);
  context.stack_pointer = top - sizeof frame;
}

void switch_context(Context& from, Context& to) {
  bamtrain_engine_switch(&from.stack_pointer, to.stack_pointer);
}

void resume_after_signal(void* signal_context, Context& to) {
  // The interrupted stack may be exhausted, so the switch saves the unneeded registers on a spare
  // stack.
  static char spare[256];
  static void* unused;
  auto* registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs;
  registers[REG_RSP] = reinterpret_cast<greg_t>(spare + sizeof spare);
  registers[REG_RDI] = reinterpret_cast<greg_t>(&unused);
  registers[REG_RSI] = reinterpret_cast<greg_t>(to.stack_pointer);
  registers[REG_RIP] = reinterpret_cast<greg_t>(&bamtrain_engine_switch);
}

#endif

const void* interrupted_instruction(void* signal_context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(
      static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<ucontext_t*>(signal_context)->uc_mcontext.pc);
#else
  (void)signal_context;
  return nullptr;
#endif
}

}  // namespace bamtrain::engine

#pragma once
// Switching between stacks: a dozen instructions on x86-64, ucontext elsewhere (two system calls a
// switch) or where BAMTRAIN_ENGINE_UCONTEXT asks for it.

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !defined(BAMTRAIN_ENGINE_UCONTEXT)
#define BAMTRAIN_ENGINE_UCONTEXT
#endif
#ifdef BAMTRAIN_ENGINE_UCONTEXT
#include <ucontext.h>
#endif

namespace bamtrain::engine {

struct Context {
#ifdef BAMTRAIN_ENGINE_UCONTEXT
  ucontext_t state;
#else
  void* stack_pointer = nullptr;
#endif
};

/// Makes `context` one that, when switched to, runs `entry` on the given stack. REQUIRES: `top` is
/// aligned to 16 bytes; `entry` never returns.
void prepare(Context& context, char* bottom, char* top, void (*entry)());

/// Saves the running context in `from` and continues `to`.
void switch_context(Context& from, Context& to);

/// From a signal handler, whose third argument is `signal_context`: when the handler has returned,
/// the interrupted context is gone and `to` continues.
void resume_after_signal(void* signal_context, Context& to);

/// The instruction that a signal handler's third argument says was interrupted.
const void* interrupted_instruction(void* signal_context);

}  // namespace bamtrain::engine

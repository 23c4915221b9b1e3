#pragma once
// Switching between stacks: about twelve instructions on x86-64. Elsewhere, or with
// BAMTRAIN_ENGINE_UCONTEXT, it uses ucontext (two system calls per switch).

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

/// Prepares `context` to run `entry` on the given stack when switched to. REQUIRES: `top` is
/// aligned to 16 bytes; `entry` never returns.
void prepare(Context& context, char* bottom, char* top, void (*entry)());

/// Saves the running context in `from` and continues `to`.
void switch_context(Context& from, Context& to);

/// Called in a signal handler, whose third argument is `signal_context`. When the handler has
/// returned, the interrupted context is gone and `to` continues.
void resume_after_signal(void* signal_context, Context& to);

/// The interrupted instruction, from a signal handler's third argument.
const void* interrupted_instruction(void* signal_context);

}  // namespace bamtrain::engine

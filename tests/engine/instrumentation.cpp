// The functions that the compiler calls at each load and store under -fsanitize=thread. Linked in
// place of libtsan, they report to the checker. This file is compiled without instrumentation.

#include <cstddef>
#include <cstdint>

#include "engine/checker.h"
#include "engine/state.h"

namespace {

using namespace bamtrain::engine;

void see(const void* address, size_t bytes, size_t alignment, bool write, const void* pc) {
  if (!machine.in_kernel || machine.in_engine) return;
  const EngineScope inside;
  checker::access(self(), address, bytes, alignment, write, pc);
}

}  // namespace

extern "C" {

void __tsan_init() { checker::enabled = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

// A type whose alignment is below its size may be at any address, "unaligned" for the compiler.
#define BAMTRAIN_ACCESS(name, bytes, alignment, write)            \
  void __tsan_##name##bytes(void* p) {                            \
    see(p, bytes, alignment, write, __builtin_return_address(0)); \
  }
#define BAMTRAIN_ACCESSES(bytes)                            \
  BAMTRAIN_ACCESS(read, bytes, bytes, false)                \
  BAMTRAIN_ACCESS(write, bytes, bytes, true)                \
  BAMTRAIN_ACCESS(unaligned_read, bytes, 0, false)          \
  BAMTRAIN_ACCESS(unaligned_write, bytes, 0, true)          \
  BAMTRAIN_ACCESS(volatile_read, bytes, bytes, false)       \
  BAMTRAIN_ACCESS(volatile_write, bytes, bytes, true)       \
  BAMTRAIN_ACCESS(unaligned_volatile_read, bytes, 0, false) \
  BAMTRAIN_ACCESS(unaligned_volatile_write, bytes, 0, true)
BAMTRAIN_ACCESSES(1)
BAMTRAIN_ACCESSES(2)
BAMTRAIN_ACCESSES(4)
BAMTRAIN_ACCESSES(8)
BAMTRAIN_ACCESSES(16)

void __tsan_read_range(void* p, size_t bytes) {
  see(p, bytes, 0, false, __builtin_return_address(0));
}
void __tsan_write_range(void* p, size_t bytes) {
  see(p, bytes, 0, true, __builtin_return_address(0));
}

// Atomics occur in the host code of an instrumented file (shared pointers, guards of statics). They
// take effect but are not checked: kernels have none.
#define BAMTRAIN_ATOMICS(bits)                                                                     \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {               \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t v, int) {            \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* p, uint##bits##_t v,      \
                                                int) {                                             \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t* p, uint##bits##_t v,     \
                                                 int) {                                            \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_fetch_sub(volatile uint##bits##_t* p, uint##bits##_t v,     \
                                                 int) {                                            \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(                                               \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t v, int, int) {          \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(                                                 \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t v, int, int) {          \
    return __atomic_compare_exchange_n(p, expected, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }
BAMTRAIN_ATOMICS(8)
BAMTRAIN_ATOMICS(16)
BAMTRAIN_ATOMICS(32)
BAMTRAIN_ATOMICS(64)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"

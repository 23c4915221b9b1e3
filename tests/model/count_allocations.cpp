#include "model/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> g_allocations = 0;

// Not inlined, else the compiler would see free() called on memory of operator new.
[[gnu::noinline]] void* take(std::size_t bytes) {
  ++g_allocations;
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}

[[gnu::noinline]] void* take_aligned(std::size_t bytes, std::size_t alignment) {
  ++g_allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, whole > 0 ? whole : alignment)) return p;
  throw std::bad_alloc();
}

[[gnu::noinline]] void give_back(void* p) { std::free(p); }

}  // namespace

// The array and nothrow forms call these.
void* operator new(std::size_t bytes) { return take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_aligned(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }

namespace bamtrain::testing {

int64_t allocations() { return g_allocations; }

}  // namespace bamtrain::testing

#include "engine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "engine/state.h"

namespace bamtrain::engine {

namespace {

constexpr size_t kGuardBytes = size_t{1} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 16;
constexpr size_t kSharedAlignment = 128;

/// By first address, including guard pages.
std::map<uintptr_t, GlobalBuffer>& buffers() {
  static std::map<uintptr_t, GlobalBuffer> all;
  return all;
}

size_t rounded_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

bool all_are(const char* from, const char* to, unsigned char byte) {
  return std::all_of(from, to, [byte](char c) { return static_cast<unsigned char>(c) == byte; });
}

void verify(const GlobalBuffer& b) {
  if (all_are(b.pages, b.data, kRedZoneByte) &&
      all_are(b.data + b.bytes, b.pages + b.page_bytes, kRedZoneByte)) {
    return;
  }
  throw Fault(FaultKind::global_bounds,
              "guard zone of a buffer of " + std::to_string(b.bytes) + " bytes",
              "no write beside the buffer", "one, by this launch or by the host before it");
}

void fill(size_t offset, size_t bytes, unsigned char byte) {
  std::memset(machine.arena + offset, byte, bytes);
}

}  // namespace

// Shared memory ---------------------------------------------------------------------------------

void reset_shared(size_t dynamic_bytes) {
  if (machine.arena == nullptr) {
    machine.arena = static_cast<char*>(std::aligned_alloc(1024, kArenaBytes));
    require(machine.arena != nullptr, "memory for the shared memory of a block");
  }
  machine.shared.clear();
  machine.shared.push_back({nullptr, kRedZone, dynamic_bytes});
  machine.shared_end = rounded_up(kRedZone + dynamic_bytes + kRedZone, kSharedAlignment);
  fill(0, machine.shared_end, kRedZoneByte);
  fill(kRedZone, dynamic_bytes, kPoisonByte);
}

void* dynamic_shared() { return machine.arena + kRedZone; }

void* static_shared(const void* key, size_t bytes, size_t alignment, Place at) {
  const EngineScope inside;
  size_t used = bytes;
  for (const SharedArray& array : machine.shared) {
    if (array.key == key) return machine.arena + array.offset;
    used += array.bytes;
  }
  if (used > options().shared_capacity || alignment > kSharedAlignment) {
    fail(FaultKind::misuse, self(), at,
         std::to_string(options().shared_capacity) + " bytes of shared memory at most",
         std::to_string(used) + " bytes with this array");
  }
  const size_t offset = machine.shared_end;
  machine.shared_end = rounded_up(offset + bytes + kRedZone, kSharedAlignment);
  require(machine.shared_end <= kArenaBytes, "an arena that holds the shared memory of a block");
  fill(offset, machine.shared_end - offset, kRedZoneByte);
  fill(offset, bytes, kPoisonByte);
  machine.shared.push_back({key, offset, bytes});
  return machine.arena + offset;
}

const SharedArray* shared_array_at(size_t offset, size_t bytes) {
  for (const SharedArray& array : machine.shared) {
    if (offset >= array.offset && offset + bytes <= array.offset + array.bytes) return &array;
  }
  return nullptr;
}

void verify_shared_red_zones() {
  size_t checked = 0;
  for (const SharedArray& array : machine.shared) {
    if (!all_are(machine.arena + checked, machine.arena + array.offset, kRedZoneByte)) break;
    checked = array.offset + array.bytes;
  }
  if (all_are(machine.arena + checked, machine.arena + machine.shared_end, kRedZoneByte)) return;
  throw Fault(FaultKind::shared_bounds, "shared memory of a block", "writes inside its arrays",
              "one beside them");
}

uint32_t shared_address(const void* shared, Place at) {
  const EngineScope inside;
  if (!in_arena(shared)) {
    fail(FaultKind::misuse, self(), at, "a pointer to shared memory", "another");
  }
  return kSharedBase + static_cast<uint32_t>(static_cast<const char*>(shared) - machine.arena);
}

char* shared_bytes(uint32_t address, size_t n, const Thread& thread, Place at, const char* what) {
  const std::string name = what;
  if (address < kSharedBase || shared_array_at(address - kSharedBase, n) == nullptr) {
    fail(FaultKind::shared_bounds, thread, at,
         name + " of " + std::to_string(n) + " bytes inside shared memory",
         "address " + hex(address) + ", " +
             std::to_string(int64_t{address} - kSharedBase - int64_t{kRedZone}) +
             " bytes from the first of " + std::to_string(machine.shared[0].bytes));
  }
  if ((address - kSharedBase) % n != 0) {
    fail(FaultKind::misaligned, thread, at,
         name + " at a multiple of " + std::to_string(n) + " bytes",
         "offset " + std::to_string(address - kSharedBase));
  }
  return machine.arena + (address - kSharedBase);
}

const void* shared_pointer(uint32_t address, size_t bytes, Place at) {
  const EngineScope inside;
  return shared_bytes(address, bytes, self(), at, "a load");
}

// Global memory ---------------------------------------------------------------------------------

void* global_allocate(size_t bytes, GlobalFill fill) {
  const size_t body = rounded_up(std::max<size_t>(bytes, 1), kAlignment);
  GlobalBuffer b;
  b.page_bytes = rounded_up(body, kPage);
  void* mapped = mmap(nullptr, b.page_bytes + 2 * kGuardBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(mapped != MAP_FAILED, "address space for a global buffer");
  b.pages = static_cast<char*>(mapped) + kGuardBytes;
  require(mprotect(b.pages, b.page_bytes, PROT_READ | PROT_WRITE) == 0,
          "memory for a global buffer");
  b.data = b.pages + (b.page_bytes - body);
  b.bytes = bytes;
  char* const end = b.data + bytes;
  std::memset(b.pages, kRedZoneByte, static_cast<size_t>(b.data - b.pages));
  std::memset(end, kRedZoneByte, static_cast<size_t>(b.pages + b.page_bytes - end));
  // New pages are zero and take no memory until they are written.
  if (fill == GlobalFill::poison) std::memset(b.data, kPoisonByte, bytes);
  buffers()[reinterpret_cast<uintptr_t>(mapped)] = b;
  return b.data;
}

void global_free(void* buffer) {
  GlobalBuffer* found = global_buffer_around(buffer);
  require(found != nullptr && found->data == buffer, "a buffer of global_allocate");
  const GlobalBuffer b = *found;
  buffers().erase(reinterpret_cast<uintptr_t>(b.pages - kGuardBytes));
  std::free(b.cells);
  munmap(b.pages - kGuardBytes, b.page_bytes + 2 * kGuardBytes);
}

GlobalBuffer* global_buffer_around(const void* address) {
  const auto a = reinterpret_cast<uintptr_t>(address);
  auto next = buffers().upper_bound(a);
  if (next == buffers().begin()) return nullptr;
  --next;
  GlobalBuffer& b = next->second;
  return a < next->first + b.page_bytes + 2 * kGuardBytes ? &b : nullptr;
}

std::string describe_global(const void* address) {
  const GlobalBuffer* b = global_buffer_around(address);
  if (b == nullptr) return "";
  const auto offset = static_cast<const char*>(address) - b->data;
  const auto bytes = static_cast<ptrdiff_t>(b->bytes);
  const std::string size = " a buffer of " + std::to_string(bytes) + " bytes)";
  if (offset < 0) return " (" + std::to_string(-offset) + " bytes before" + size;
  if (offset < bytes) return " (byte " + std::to_string(offset) + " of" + size;
  return " (" + std::to_string(offset - bytes) + " bytes past the end of" + size;
}

void verify_guard_zones() {
  for (const auto& [first, buffer] : buffers()) verify(buffer);
}

}  // namespace bamtrain::engine

#pragma once
// The engine's internal state: the threads of the running block, its warps, its shared memory.

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls.h"
#include "engine/engine.h"
#include "engine/fiber.h"

namespace bamtrain::engine {

constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kStackGuard = 4096;  // below the stack, unmapped
constexpr uint32_t kLanes = 32;
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxWarps = kMaxThreads / kLanes;

/// Shared memory is an arena of bytes. Each array lies between two red zones that no thread may
/// touch. A shared address is an offset into the arena plus kSharedBase, so that neither a small
/// integer nor a generic pointer is mistaken for one.
constexpr size_t kRedZone = 1024;
constexpr size_t kArenaBytes = 512 * 1024;
constexpr uint32_t kSharedBase = 1u << 24;
constexpr unsigned char kRedZoneByte = 0xA5;
constexpr unsigned char kPoisonByte = 0xFF;  // a NaN in every floating-point type, -1 as an integer

struct SharedArray {
  const void* key;  // null for the dynamic array
  size_t offset, bytes;
};

/// One copy_async_16 of a thread.
struct Copy {
  uint32_t to;
  const void* from;
  bool wanted;
  bool done;
  uint32_t group;
  Place at;
  const void* issued;  // return address of the call
};

enum class Wait : uint8_t { none, collective, barrier, returned };

struct Thread {
  Coordinates at;
  uint32_t number = 0, lane = 0, warp = 0;
  Wait wait = Wait::none;
  const char* what = "";  // what it waits in, at `where`
  Place where;
  Context context;
  char* bottom = nullptr;  // of its stack
  char* top = nullptr;
  std::vector<Copy> copies;  // pending
  uint32_t groups = 0;       // committed so far
};

/// Computes a collective for all lanes of `mask`; operands[l] is the operand of lane l.
using Execute = void (*)(void* const* operands, uint32_t mask, const void* called_from);

struct Rendezvous {
  uint32_t mask, arrived;
  Execute execute;
  const char* what;
  Place where;
  void* operands[kLanes];
};

struct Warp {
  uint32_t ready = 0, live = 0;  // lanes
  uint32_t open = 0;             // collectives in which lanes wait, with disjoint masks
  Rendezvous collectives[kLanes];
};

struct Barrier {
  uint32_t arrived = 0;
  Place where;
  uint32_t lanes[kMaxWarps] = {};
};

/// A fault, on its way from the fiber that detected it to run(), which throws it.
struct Report {
  FaultKind kind;
  const Thread* thread;
  Place place;     // of the fault, if `pc` is null
  const void* pc;  // otherwise: a return address, or one past a trapping instruction
  std::string expected, found;
  const void* other_pc;  // the earlier access that `found` ends with, or null
};

struct Machine {
  std::vector<Thread> threads;
  Warp warps[kMaxWarps];
  Barrier barrier;
  uint32_t thread_count = 0, warp_count = 0, live = 0, current_warp = 0;

  char* stacks = nullptr;
  size_t stacks_mapped = 0;  // threads that have a stack
  char* arena = nullptr;
  std::vector<SharedArray> shared;  // the dynamic array first
  size_t shared_end = 0;            // of the last array's red zone

  void (*entry)(void*) = nullptr;
  void* arguments = nullptr;
  size_t argument_bytes = 0;
  Context launcher;
  bool in_kernel = false;  // a thread runs, or the engine on behalf of one
  bool in_engine = false;  // accesses are the engine's
  std::unique_ptr<Report> report;
  std::exception_ptr exception;  // thrown by a kernel
  uint64_t random = 1;
};
extern Machine machine;

/// During its lifetime, the checker ignores accesses in the instrumented code of inline functions.
class EngineScope {
 public:
  EngineScope() { machine.in_engine = true; }
  ~EngineScope() { machine.in_engine = false; }
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;
};

/// The thread whose coordinates `running` points to. REQUIRES: a kernel is running.
inline Thread& self() {
  return *const_cast<Thread*>(
      reinterpret_cast<const Thread*>(running));  // `at` is its first member
}

/// Compares file pointers first: calls at one place share one string, and that is the most common
/// case.
inline bool same_place(Place a, Place b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

uint64_t next_random();

/// Switches from the running thread, whose `wait` gives the reason, to a runnable one.
void leave();

/// Waits for the lanes of `mask` of the own warp; the last to arrive calls `execute`.
void collective(Execute execute, void* operand, uint32_t mask, const char* what, Place at,
                const void* called_from);

/// Switches back to run(), which throws a Fault that names `thread`.
[[noreturn]] void fail(FaultKind kind, const Thread& thread, Place place,
                       const std::string& expected, const std::string& found);
[[noreturn]] void fail_at(FaultKind kind, const Thread& thread, const void* pc,
                          const std::string& expected, const std::string& found,
                          const void* other_pc = nullptr);
/// has_report: whether fail() or a signal stopped a thread. The other function returns what run()
/// then throws; `last` is the thread that ran.
bool has_report();
Fault take_report(const Thread& last);

/// During its lifetime, signals that a kernel may raise become reports.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

/// Lays out the block's shared memory again: only the dynamic array, poisoned.
void reset_shared(size_t dynamic_bytes);
inline bool in_arena(const void* p) {
  const auto* c = static_cast<const char*>(p);
  return c >= machine.arena && c < machine.arena + kArenaBytes;
}
/// " (n bytes past the end of a buffer of m bytes)" for an address in or near a global buffer,
/// otherwise "".
std::string describe_global(const void* address);

/// The array that contains [offset, offset + bytes) of the arena, or null.
const SharedArray* shared_array_at(size_t offset, size_t bytes);
/// Throws Fault if a red zone of shared memory or a guard zone of a global buffer was overwritten.
void verify_shared_red_zones();
void verify_guard_zones();

/// `n` bytes at a shared address; the running collective or copy checks them for `thread`.
char* shared_bytes(uint32_t address, size_t n, const Thread& thread, Place at, const char* what);

/// "0x1f"
std::string hex(uint64_t value);

}  // namespace bamtrain::engine

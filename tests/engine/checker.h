#pragma once
// Checks every load and store of kernels compiled with -fsanitize=thread, whose calls
// instrumentation.cpp answers in place of libtsan. Races are found by happens-before, independent
// of the order in which the threads ran. Two accesses of one byte pair race, if one of them is a
// write and
// - they are by two threads of a block, with neither a barrier nor a chain of sync_warp in between,
//   or
// - they are by two blocks of a launch.
//
// Limits. Single bytes of different threads in the same byte pair count as shared. If lanes read a
// cell under different partial masks of sync_warp, a later write may be a false positive: this
// happens when the writing lane is ordered after each reader only through a third lane. memcpy is
// not checked.

#include <cstddef>
#include <cstdint>

namespace bamtrain::engine {
struct Copy;
struct Thread;
}  // namespace bamtrain::engine

namespace bamtrain::engine::checker {

constexpr size_t kCellBytes = 2;

/// One access: thread, time, instruction.
struct Access {
  uint32_t epoch = 0;  // 0: no access
  uint32_t clock = 0;  // of the thread's warp
  uint32_t code = 0;   // offset in the program
  uint32_t thread = 0;
};

/// The access history of kCellBytes of memory.
struct Cell {
  Access write;
  Access read;                       // latest, by the warp that first read in its epoch
  Access read_elsewhere;             // by a second warp in the same epoch
  uint32_t read_lanes = 0;           // of the warp of `read`, in its epoch
  uint32_t read_by_other_block = 0;  // epoch of the latest read by a block before that of `read`
  uint32_t copy_epoch = 0;           // when a copy to the cell was issued; 0: none pending
  uint32_t copy_code = 0;
};

/// True if instrumented code is linked in.
extern bool enabled;

void at_launch();
void at_block();
void at_barrier();
void at_sync_warp(uint32_t warp, uint32_t mask);

/// Checks an access by `thread`, made by the instruction before `pc`. `alignment` 0: any alignment.
void access(const Thread& thread, const void* address, size_t bytes, size_t alignment, bool write,
            const void* pc);
/// Like access(), in global or shared memory, for operands that the engine reads for a wrapper.
inline void access_if_enabled(const Thread& thread, const void* address, size_t bytes, bool write,
                              const void* pc) {
  if (enabled) access(thread, address, bytes, 0, write, pc);
}

void at_copy_issued(const Thread& thread, const Copy& copy);
void at_copy_done(const Thread& thread, const Copy& copy);

}  // namespace bamtrain::engine::checker

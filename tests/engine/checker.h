#pragma once
// Watches every load and store of kernels that are compiled with -fsanitize=thread, whose calls
// instrumentation.cpp answers in libtsan's place. Races are found by happens-before, in whatever
// order the threads ran: two accesses of one byte pair, one of them a write, by two threads of a
// block with neither a barrier nor a chain of sync_warp between them; by two blocks of a launch in
// any case.
//
// Limits. One-byte data of different threads in the same pair of bytes counts as shared. Where
// lanes read a cell under different partial masks of sync_warp, a later write by a lane that is
// ordered after each of them only through a third may be called a race. memcpy is not seen.

#include <cstddef>
#include <cstdint>

namespace bamtrain::engine {
struct Copy;
struct Thread;
}  // namespace bamtrain::engine

namespace bamtrain::engine::checker {

constexpr size_t kCellBytes = 2;

/// One access: who, when, from which instruction.
struct Access {
  uint32_t epoch = 0;  // 0: none
  uint32_t clock = 0;  // of the thread's warp
  uint32_t code = 0;   // offset in the program
  uint32_t thread = 0;
};

/// What is known of kCellBytes of memory.
struct Cell {
  Access write;
  Access read;                       // latest, by the warp that first read in its epoch
  Access read_elsewhere;             // by a second warp in the same epoch
  uint32_t read_lanes = 0;           // of the warp of `read`, in its epoch
  uint32_t read_by_other_block = 0;  // epoch of the latest read by a block before that of `read`
  uint32_t copy_epoch = 0;           // in which a copy to the cell was issued; 0: none is pending
  uint32_t copy_code = 0;
};

/// True as soon as instrumented code is linked in.
extern bool enabled;

void at_launch();
void at_block();
void at_barrier();
void at_sync_warp(uint32_t warp, uint32_t mask);

/// An access by `thread` from the instruction before `pc`. `alignment` 0: any is allowed.
void access(const Thread& thread, const void* address, size_t bytes, size_t alignment, bool write,
            const void* pc);
/// As access() of global or shared memory, for operands that the engine reads for a wrapper.
inline void access_if_enabled(const Thread& thread, const void* address, size_t bytes, bool write,
                              const void* pc) {
  if (enabled) access(thread, address, bytes, 0, write, pc);
}

void at_copy_issued(const Thread& thread, const Copy& copy);
void at_copy_done(const Thread& thread, const Copy& copy);

}  // namespace bamtrain::engine::checker

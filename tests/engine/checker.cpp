#include "engine/checker.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "engine/state.h"

extern "C" const char __executable_start;  // defined by the linker
extern "C" const char _end;

namespace bamtrain::engine::checker {

bool enabled = false;

namespace {

/// Epochs number the intervals between barriers, over all blocks and launches. Records of earlier
/// intervals need no clearing: their epoch shows that they are old.
uint32_t epoch = 0, block_begin = 1, launch_begin = 1;

/// A warp's clock advances at each of its sync_warp calls. A lane's accesses carry the clock of its
/// last sync_warp. The lane is ordered after the accesses of lane l up to clock seen[l].
struct Lane {
  uint32_t clock = 1;
  uint32_t seen[kLanes] = {};
};
struct WarpClocks {
  uint32_t clock = 1;
  Lane lanes[kLanes];
};
WarpClocks clocks[kMaxWarps];

std::vector<Cell> shared_cells;

Lane& lane_of(const Thread& t) { return clocks[t.warp].lanes[t.lane]; }

uint32_t code_of(const void* pc) {
  return static_cast<uint32_t>(static_cast<const char*>(pc) - &__executable_start);
}
const void* pc_of(uint32_t code) { return &__executable_start + code; }

/// Whether `a` happened before the current access of `t`. REQUIRES: `a` happened in this block.
bool ordered(const Access& a, const Thread& t) {
  if (a.thread == t.number || a.epoch < epoch) return true;
  return a.thread / kLanes == t.warp && lane_of(t).seen[a.thread % kLanes] >= a.clock;
}

/// The access being checked, for messages.
struct Attempt {
  const Thread& thread;
  const void* pc;
  size_t bytes;
  bool write;
  bool shared;
  size_t offset;  // in the shared array or global buffer
};

std::string describe(const Attempt& a) {
  return std::string(a.write ? "a write of " : "a read of ") + std::to_string(a.bytes) +
         " bytes at offset " + std::to_string(a.offset) + " of " +
         (a.shared ? "shared memory" : "a global buffer");
}

[[noreturn]] void fail_race(const Attempt& a, const Access& earlier, bool earlier_writes) {
  const std::string action = earlier_writes ? "a write" : "a read";
  if (earlier.epoch < block_begin) {
    fail_at(FaultKind::block_race, a.thread, a.pc, "blocks that share no bytes but those all read",
            describe(a) + ", touched in this launch by " + action + " of another block",
            earlier.code != 0 ? pc_of(earlier.code) : nullptr);
  }
  fail_at(FaultKind::race, a.thread, a.pc, "a barrier or sync_warp between two threads' accesses",
          describe(a) + ", not ordered with " + action + " by thread number " +
              std::to_string(earlier.thread) + " of the block",
          pc_of(earlier.code));
}

void check(const Cell& cell, const Attempt& a) {
  // Shared memory of earlier blocks is gone; global memory can race with them.
  const uint32_t oldest = a.shared ? block_begin : launch_begin;
  if (cell.copy_epoch >= block_begin) {
    fail_at(FaultKind::pending_copy, a.thread, a.pc, "a wait for the asynchronous copy before",
            describe(a) + ", the target of a copy issued", pc_of(cell.copy_code));
  }
  if (cell.write.epoch >= oldest) {
    if (cell.write.epoch < block_begin || !ordered(cell.write, a.thread)) {
      fail_race(a, cell.write, true);
    }
  } else if (a.shared && !a.write) {
    fail_at(FaultKind::uninitialised, a.thread, a.pc, "a write by this block before",
            describe(a) + " that no thread wrote");
  }
  if (!a.write) return;
  if (!a.shared && cell.read_by_other_block >= launch_begin) {
    fail_race(a, {cell.read_by_other_block, 0, 0, 0}, false);
  }
  if (cell.read.epoch >= oldest) {
    if (cell.read.epoch < block_begin) fail_race(a, cell.read, false);
    Access read = cell.read;
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((cell.read_lanes >> l & 1) == 0) continue;
      read.thread = cell.read.thread / kLanes * kLanes + l;
      if (!ordered(read, a.thread)) fail_race(a, read, false);
    }
  }
  if (cell.read_elsewhere.epoch >= block_begin && !ordered(cell.read_elsewhere, a.thread)) {
    fail_race(a, cell.read_elsewhere, false);
  }
}

void record_write(Cell& cell, const Access& a) {
  cell = {};
  cell.write = a;
}

void record_read(Cell& cell, const Access& a, const Thread& t) {
  const uint32_t own = 1u << t.lane;
  if (cell.read.epoch != epoch) {
    if (cell.read.epoch < block_begin) cell.read_by_other_block = cell.read.epoch;
    cell.read = a;
    cell.read_lanes = own;
    return;
  }
  if (cell.read.thread / kLanes != t.warp) {
    if (cell.read_elsewhere.epoch != epoch) cell.read_elsewhere = a;
    return;
  }
  bool all_seen = true;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((cell.read_lanes >> l & 1) != 0 && l != t.lane) {
      all_seen &= lane_of(t).seen[l] >= cell.read.clock;
    }
  }
  cell.read_lanes = all_seen ? own : cell.read_lanes | own;
  cell.read = {a.epoch, std::max(a.clock, all_seen ? 0 : cell.read.clock), a.code, a.thread};
}

void check_and_record(Cell* cells, const Attempt& a) {
  const Access access = {epoch, lane_of(a.thread).clock, code_of(a.pc), a.thread.number};
  for (size_t c = a.offset / kCellBytes; c <= (a.offset + a.bytes - 1) / kCellBytes; ++c) {
    check(cells[c], a);
    if (a.write) {
      record_write(cells[c], access);
    } else {
      record_read(cells[c], access, a.thread);
    }
  }
}

/// The cells of an array; an array's offset in the arena is a multiple of kCellBytes.
Cell* cells_of(const SharedArray& array) {
  if (shared_cells.empty()) shared_cells.resize(kArenaBytes / kCellBytes);
  return shared_cells.data() + array.offset / kCellBytes;
}

Cell* cells_of(GlobalBuffer& buffer) {
  if (buffer.cells == nullptr) {
    const size_t count = buffer.bytes / kCellBytes + 1;
    buffer.cells = static_cast<Cell*>(std::calloc(count, sizeof(Cell)));  // as Cell{}, on demand
    require(buffer.cells != nullptr, "memory for the checker's records");
  }
  return buffer.cells;
}

void access_shared(Attempt a, const char* p, size_t alignment) {
  const auto in_arena = static_cast<size_t>(p - machine.arena);
  const SharedArray* array = shared_array_at(in_arena, a.bytes);
  a.shared = true;
  if (array == nullptr) {
    const auto offset = static_cast<ptrdiff_t>(in_arena) - static_cast<ptrdiff_t>(kRedZone);
    fail_at(FaultKind::shared_bounds, a.thread, a.pc, "an access inside one array",
            std::string(a.write ? "a write of " : "a read of ") + std::to_string(a.bytes) +
                " bytes at " + std::to_string(offset) +
                " from the start of shared memory, whose dynamic array has " +
                std::to_string(machine.shared[0].bytes));
  }
  a.offset = in_arena - array->offset;
  if (alignment > 1 && in_arena % alignment != 0) {
    fail_at(FaultKind::misaligned, a.thread, a.pc,
            "a multiple of " + std::to_string(alignment) + " bytes", describe(a));
  }
  check_and_record(cells_of(*array), a);
}

void access_global(Attempt a, const char* p, size_t alignment, GlobalBuffer& buffer) {
  if (p < buffer.data || p + a.bytes > buffer.data + buffer.bytes) {
    fail_at(FaultKind::global_bounds, a.thread, a.pc, "an access inside the buffer",
            std::string(a.write ? "a write of " : "a read of ") + std::to_string(a.bytes) +
                " bytes" + describe_global(p));
  }
  a.offset = static_cast<size_t>(p - buffer.data);
  if (alignment > 1 && reinterpret_cast<uintptr_t>(p) % alignment != 0) {
    fail_at(FaultKind::misaligned, a.thread, a.pc,
            "a multiple of " + std::to_string(alignment) + " bytes", describe(a));
  }
  check_and_record(cells_of(buffer), a);
}

bool lies_in(const char* p, size_t bytes, const void* from, const void* to) {
  return p >= from && p + bytes <= to;
}

Attempt copy_attempt(const Thread& thread, const Copy& copy) {
  const size_t offset = copy.to - kSharedBase;
  return {thread, copy.issued, 16, true, true, offset - shared_array_at(offset, 16)->offset};
}

}  // namespace

void at_launch() { launch_begin = epoch + 1; }

void at_block() {
  block_begin = ++epoch;
  if (!enabled) return;
  for (uint32_t w = 0; w < machine.warp_count; ++w) clocks[w] = {};
}

void at_barrier() { ++epoch; }

void at_sync_warp(uint32_t warp, uint32_t mask) {
  WarpClocks& w = clocks[warp];
  Lane joined;
  joined.clock = ++w.clock;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    for (uint32_t of = 0; of < kLanes; ++of) {
      joined.seen[of] = std::max(joined.seen[of], w.lanes[l].seen[of]);
    }
    joined.seen[l] = joined.clock - 1;
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) != 0) w.lanes[l] = joined;
  }
}

void access(const Thread& thread, const void* address, size_t bytes, size_t alignment, bool write,
            const void* pc) {
  const auto* p = static_cast<const char*>(address);
  if (bytes == 0 || lies_in(p, bytes, thread.bottom, thread.top)) return;
  const Attempt attempt = {thread, pc, bytes, write, false, 0};
  if (in_arena(p)) return access_shared(attempt, p, alignment);
  if (GlobalBuffer* buffer = global_buffer_around(p)) {
    return access_global(attempt, p, alignment, *buffer);
  }
  const auto* arguments = static_cast<const char*>(machine.arguments);
  const bool constant = lies_in(p, bytes, arguments, arguments + machine.argument_bytes) ||
                        lies_in(p, bytes, &thread.at, &thread.at + 1) ||
                        lies_in(p, bytes, &__executable_start, &_end);
  if (constant && !write) return;
  fail_at(FaultKind::foreign_memory, thread, pc,
          "shared memory, a registered buffer, a local variable, or to read a constant",
          std::string(write ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at " +
              hex(reinterpret_cast<uintptr_t>(p)));
}

void at_copy_issued(const Thread& thread, const Copy& copy) {
  if (!enabled) return;
  if (copy.wanted) access(thread, copy.from, 16, 16, false, copy.issued);
  const Attempt attempt = copy_attempt(thread, copy);
  Cell* cells = cells_of(*shared_array_at(copy.to - kSharedBase, 16));
  for (size_t c = attempt.offset / kCellBytes; c < (attempt.offset + 16) / kCellBytes; ++c) {
    check(cells[c], attempt);
    cells[c].copy_epoch = epoch;
    cells[c].copy_code = code_of(copy.issued);
  }
}

void at_copy_done(const Thread& thread, const Copy& copy) {
  if (!enabled) return;
  const Attempt attempt = copy_attempt(thread, copy);
  Cell* cells = cells_of(*shared_array_at(copy.to - kSharedBase, 16));
  const Access access = {epoch, lane_of(thread).clock, code_of(copy.issued), thread.number};
  for (size_t c = attempt.offset / kCellBytes; c < (attempt.offset + 16) / kCellBytes; ++c) {
    record_write(cells[c], access);
  }
}

}  // namespace bamtrain::engine::checker

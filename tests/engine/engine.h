#pragma once
// Runs kernels on the CPU, for tests. The threads of a block are fibers of the calling thread. The
// blocks of a grid run one after another, so a kernel whose blocks wait for each other hangs. A
// collective is a rendezvous: each lane leaves its operands, and the last one to arrive computes.
//
// A correct kernel gives bitwise identical results under all Options. An incorrect kernel can be
// detected in four ways:
// - by a different result in another order;
// - by the NaN that fills unwritten memory;
// - by a Fault;
// - by a Fault at the very access, if its file is compiled with the checker's instrumentation (see
//   checker.h).
//
// Not modelled: several streams, clusters, memory fences, atomics, volatile communication between
// blocks or within one, the error of approximate instructions.
//
// A process runs one kernel at a time; nothing here is thread-safe.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace bamtrain::engine {

enum class Order { ascending, descending, random };
/// When an asynchronous copy takes place: at the issue, or at the wait.
enum class Completion { eager, lazy, random };

struct Options {
  Order lanes = Order::ascending;  // lanes of a warp and warps of a block, among the runnable ones
  Order blocks = Order::ascending;
  bool alternate_warps = false;  // switch warps at each collective, else run one as far as it goes
  Completion copies = Completion::lazy;
  uint64_t seed = 1;                    // for random orders
  size_t shared_capacity = 227 * 1024;  // bytes a block may use: 99 KiB on sm_86, 163 on sm_80
};

/// The options of the next launches.
Options& options();

/// Options that together cover each order, completion and way of switching warps, for tests that
/// require bitwise identical results from all.
std::vector<Options> schedules();

enum class FaultKind {
  divergent_barrier,     // threads of a block wait at different barriers, or some elsewhere
  divergent_collective,  // lanes of a warp wait in different collectives, or with other masks
  shuffle_source,        // a lane outside the mask, or no such lane
  misuse,                // an argument that violates a wrapper's contract
  unfinished_copy,       // a thread returns before waiting for its copies
  shared_bounds,
  global_bounds,
  foreign_memory,  // neither shared nor registered global memory nor the thread's own
  misaligned,
  uninitialised,       // a read of shared memory that no thread of this block wrote
  pending_copy,        // an access to the target of a copy that was not waited for
  race,                // between threads of a block
  block_race,          // between blocks of a launch
  undefined_behaviour  // an instruction trap
};
const char* name_of(FaultKind kind);

/// A kernel broke a rule. where() is "file:line in block (x, y, z), thread (x, y, z)".
class Fault : public Error {
 public:
  Fault(FaultKind kind, const std::string& where, const std::string& expected,
        const std::string& found)
      : Error(ExitCode::internal, where, expected, found, ""), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

/// Counts since the last reset.
struct Counters {
  uint64_t switches = 0, collectives = 0, barriers = 0, blocks = 0;
  uint64_t ldmatrix = 0;
  uint64_t ldmatrix_conflicts = 0;  // rows that share a group of banks with an earlier row
  uint64_t mma = 0;
};
Counters& counters();

enum class GlobalFill { poison, zeros };
/// Allocates global memory, filled with NaN or zeros and aligned to 16 bytes. It ends at an
/// inaccessible page, and 1 MiB of such pages lies on either side. After every launch, the engine
/// verifies the bytes between the buffer and these pages.
void* global_allocate(size_t bytes, GlobalFill fill = GlobalFill::poison);
void global_free(void* buffer);

/// An array in global memory whose elements the test sets and reads.
template <class T>
class GlobalArray {
 public:
  explicit GlobalArray(size_t count)
      : data_(static_cast<T*>(global_allocate(count * sizeof(T)))), count_(count) {}
  explicit GlobalArray(const std::vector<T>& values) : GlobalArray(values.size()) {
    for (size_t i = 0; i < count_; ++i) data_[i] = values[i];
  }
  GlobalArray(const GlobalArray&) = delete;
  GlobalArray& operator=(const GlobalArray&) = delete;
  ~GlobalArray() { global_free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  std::vector<T> values() const { return {data_, data_ + count_}; }

 private:
  T* data_;
  size_t count_;
};

}  // namespace bamtrain::engine

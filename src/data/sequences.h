#pragma once
// The numbered training sequences of a run: windows of shards, sequences of tasks, or both
// interleaved.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/interleave.h"
#include "data/loader.h"
#include "tasks/task.h"

namespace bamtrain {

/// A task and its weight in a mixture.
struct TaskSource {
  std::shared_ptr<const Task> task;
  double weight = 1;
};

/// Totals over some sequences: inputs, counted targets, and the longest length.
struct SequenceCounts {
  int64_t inputs = 0, targets = 0;
  int64_t longest = 0;
};

/// The infinite list of training sequences, `per_step` per step. Sequence k is a pure function of
/// (sources, T, seed, k), and of the step for tasks whose length depends on the step.
class Sequences {
 public:
  /// `shards` may be null; their weight is the sum of their sources' weights. Shards have windows
  /// of T + 1 tokens; task sequences have at most T inputs. Throws Error (ExitCode::config) for a
  /// task that may draw longer ones. REQUIRES: at least one source; per_step >= 1.
  Sequences(std::unique_ptr<Loader> shards, std::vector<TaskSource> tasks, int64_t sequence_length,
            int64_t per_step);

  /// Null if there are only tasks.
  const Loader* shards() const { return shards_.get(); }
  const std::vector<TaskSource>& tasks() const { return tasks_; }
  /// Shard sources; empty if there are only tasks.
  const std::vector<Source>& shard_sources() const;

  /// Writes the sequence numbers of a step into `order` (per_step), group after group, in
  /// microbatches of B. With tasks only, sequences are sorted by length: a microbatch has similar
  /// lengths, and groups have similar work. Otherwise they stay in numerical order.
  void order(int64_t step, int64_t B, int64_t groups, std::vector<int64_t>* order);

  /// Reads inputs and targets (n, t) of the sequences with these numbers, which belong to `step`.
  /// Returns t: with tasks only, their longest length, rounded up to a multiple of kColumns; else
  /// T. Shorter rows are filled with the task's padding and ignored targets. `lengths` (n), if not
  /// null, gets each length without padding. REQUIRES: room for (n, T). Errors: as Loader::read.
  int64_t read(std::span<const int64_t> numbers, int64_t step, int32_t* inputs, int32_t* targets,
               SequenceCounts* counts, int32_t* lengths = nullptr);
  /// Limits the number of distinct lengths, so that a device may cache its work for each.
  static constexpr int64_t kColumns = 16;

  /// As Loader's, for shards: sequences first, ..., first + count - 1 will be read.
  void reserve_ahead(int64_t count);
  void prefetch(int64_t first, int64_t count);

 private:
  /// The source of sequence k (0: the shards, if any) and its number within that source.
  Interleave::Place place(int64_t k) const { return turns_(k); }
  const Task& task(int64_t source) const {
    return *tasks_[static_cast<size_t>(source - (shards_ ? 1 : 0))].task;
  }
  bool is_window(int64_t source) const { return shards_ != nullptr && source == 0; }
  int64_t length(const Interleave::Place& place, int64_t step) const;
  int64_t read_windows(int64_t first, int64_t count, int32_t* inputs, int32_t* targets);

  std::unique_ptr<Loader> shards_;
  std::vector<TaskSource> tasks_;
  int64_t sequence_length_, per_step_;
  Interleave turns_;
  std::vector<int32_t> windows_;                     // (n, T + 1)
  std::vector<Example> examples_;                    // n
  std::vector<std::pair<int64_t, int64_t>> sorted_;  // (per_step) length, number
};

}  // namespace bamtrain

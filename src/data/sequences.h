#pragma once
// What a run trains on, by number: windows of shards, sequences of tasks, or both in turn.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/interleave.h"
#include "data/loader.h"
#include "tasks/task.h"

namespace bamtrain {

/// A task and its part in a mixture.
struct TaskSource {
  std::shared_ptr<const Task> task;
  double weight = 1;
};

/// Of some sequences: how many inputs they have, and the longest of them, and how many targets
/// count.
struct SequenceCounts {
  int64_t inputs = 0, targets = 0;
  int64_t longest = 0;
};

/// The infinite sequence of what a run trains on, `per_step` in a step. Number k is a pure function
/// of (sources, T, seed, k), and of the step where a task's length is that of the step.
class Sequences {
 public:
  /// Of `shards`, which may be null, with the sum of their weights, and of tasks. Shards have
  /// windows of T + 1 tokens, tasks no longer sequences than T. Error (ExitCode::config) for one
  /// that may have. REQUIRES: one source at least; per_step >= 1.
  Sequences(std::unique_ptr<Loader> shards, std::vector<TaskSource> tasks, int64_t sequence_length,
            int64_t per_step);

  /// Null where there are tasks alone.
  const Loader* shards() const { return shards_.get(); }
  const std::vector<TaskSource>& tasks() const { return tasks_; }
  /// Sources of shards; none where there are tasks alone.
  const std::vector<Source>& shard_sources() const;

  /// The numbers of a step in the order in which `groups` groups take them, one after another, in
  /// micro-batches of B. Tasks alone: by length, so that a micro-batch has sequences of about one
  /// length and groups about the same work; else as they are numbered. `order` (per_step).
  void order(int64_t step, int64_t B, int64_t groups, std::vector<int64_t>* order);

  /// Inputs and targets (n, t) of the sequences of these numbers, which belong to `step`; t, their
  /// longest length, rounded up to a multiple of kColumns where tasks stand alone, is returned.
  /// Rows that end before have their task's padding and no targets behind. lengths (n), where
  /// given: of each without it. REQUIRES: room for (n, T). Errors: as Loader::read.
  int64_t read(std::span<const int64_t> numbers, int64_t step, int32_t* inputs, int32_t* targets,
               SequenceCounts* counts, int32_t* lengths = nullptr);
  /// So few different lengths that a device may keep what it does for each.
  static constexpr int64_t kColumns = 16;

  /// Of shards, as Loader's: the sequences first, ..., first + count - 1 will be read.
  void reserve_ahead(int64_t count);
  void prefetch(int64_t first, int64_t count);

 private:
  /// Which source number k is of, 0 the shards where there are any, and which of it.
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

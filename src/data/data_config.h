#pragma once
// The training data: plain structs, filled by src/config and by tests.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

/// Relative to the largest weight: a smaller one would be rounded away.
inline constexpr double kSmallestWeight = 1e-12;

/// A task with its options and the lengths that it draws.
struct TaskChoice {
  const TaskInfo* info = nullptr;
  Options options;  // complete
  LengthRange lengths;
  bool operator==(const TaskChoice&) const = default;
};

/// A request to score a model on a task, at lengths that may differ from its training lengths.
struct TaskRequest {
  std::string name;              // results are named "NAME@LENGTH"
  TaskChoice task;               // its `lengths` are ignored
  std::vector<int64_t> lengths;  // source lengths, ascending, unique
  int64_t samples = 1000;        // sequences per length
  uint64_t seed = 0;             // seed of the samples
  bool bleu = false;             // also measure BLEU of greedy decoding
};

/// Shards or a task.
struct DataSource {
  std::string path;   // a folder of *.bin shards, or a glob; empty: a task
  double weight = 1;  // finite, positive, at least kSmallestWeight of the largest of a mixture
  std::optional<TaskChoice> task = std::nullopt;
  bool operator==(const DataSource&) const = default;
};

struct DataSources {
  std::vector<DataSource> list;

  DataSources() = default;
  DataSources(std::string path) : list{{std::move(path), 1}} {}  // a single source
  explicit DataSources(std::vector<DataSource> mixture) : list(std::move(mixture)) {}

  bool has_tasks() const {
    return std::any_of(list.begin(), list.end(), [](const DataSource& s) { return s.task; });
  }
  bool has_shards() const {
    return std::any_of(list.begin(), list.end(), [](const DataSource& s) { return !s.task; });
  }
};

struct DataConfig {
  DataSources train;
  std::string val;                        // as DataSource::path; empty: no validation shards
  std::optional<TaskChoice> val_task;     // replaces `val`
  int64_t sequence_length = 0;            // T
  std::optional<int64_t> document_start;  // token id that begins a document; default: manifest
  bool shuffle = true;                    // permute windows per (seed, epoch), else file order
  bool verify = true;                     // compare shards with their manifests during training

  bool validates() const { return !val.empty() || val_task; }
};

}  // namespace bamtrain

#pragma once
// What is trained on: a plain struct, filled by src/config and by tests.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

/// Of the largest: a source with less would be rounded away.
inline constexpr double kSmallestWeight = 1e-12;

/// A task with its options, and the lengths of what it draws.
struct TaskChoice {
  const TaskInfo* info = nullptr;
  Options options;  // complete
  LengthRange lengths;
  bool operator==(const TaskChoice&) const = default;
};

/// How well a model does a task at lengths that need not be those of its training.
struct TaskRequest {
  std::string name;              // of its results, "NAME@LENGTH"
  TaskChoice task;               // its lengths are not read
  std::vector<int64_t> lengths;  // of sources, ascending, unique
  int64_t samples = 1000;        // sequences at each
  uint64_t seed = 0;             // of these
  bool bleu = false;             // of what greedy decoding writes, too
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
  DataSources(std::string path) : list{{std::move(path), 1}} {}  // that one alone
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
  std::string val;                        // as DataSource::path; empty: no shards to validate on
  std::optional<TaskChoice> val_task;     // in their place
  int64_t sequence_length = 0;            // T
  std::optional<int64_t> document_start;  // token id that begins a document; default: manifest
  bool shuffle = true;                    // windows permuted per (seed, epoch), or in file order
  bool verify = true;  // shards are compared with their manifests while the run trains

  bool validates() const { return !val.empty() || val_task; }
};

}  // namespace bamtrain

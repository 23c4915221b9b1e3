#pragma once
// Runs the evaluations of eval.tasks, during training and at its end.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "dist/agreement.h"
#include "dist/communicator.h"
#include "eval/text_evaluation.h"
#include "record/results.h"
#include "train/trainer.h"

namespace bamtrain {

class TaskMeasures {
 public:
  /// Reads the files that entries name. Throws Error naming the entry: (ExitCode::config) if it
  /// could not be measured; for files as open_text_evaluation and open_tokenizer.
  TaskMeasures(const RunConfig& config, Backend& backend);

  /// Whether an entry is due after `step` steps.
  bool due(int64_t step) const;

  /// Measures the entries that are due, with all master weights (elements) P, on sequences drawn
  /// for this: {"copy@64": as score_task,
  /// ...}. `beside` is a backend on the trainer's device other than the trainer's own.
  /// `progress_of` makes the callback of a result that begins. Collective; the result is the same
  /// on all processes.
  nlohmann::ordered_json measure(
      const Tensor& master_weights, Backend& beside, Communicator& comm, int64_t step,
      const std::function<TaskProgress(const std::string& result)>& progress_of) const;

  /// Measures all entries with the checkpoint in `folder`, which rank 0 reads. Skips what `results`
  /// (rank 0's) already has for these weights. Each result is on disk before the next one begins.
  /// `tell` gets a line for each, on rank 0. Collective. Throws Error (checkpoint, io, device).
  void measure_at_end(Backend& backend, Communicator& comm, const std::string& folder,
                      Results* results, const std::function<void(const std::string&)>& tell) const;

  /// Memory of the entries' evaluation: `beside` in addition to the steps' memory, during training;
  /// `after` at the end of the run, including the master_weights.
  struct Memory {
    int64_t beside = 0, after = 0;
    std::vector<int64_t> of_entries = {};  // by entry, at the end; `after` is the maximum
  };
  /// Throws Error (ExitCode::device) for an entry whose sizes overflow.
  Memory memory(Backend& backend) const;
  /// Throws Error (ExitCode::device) for the entry that needs more memory at the run's end than the
  /// backend has.
  static void check_fits(const Memory& memory, Backend& backend);

  /// The identity of the entries' files, which must be the same on all processes.
  std::vector<Fact> facts() const;

 private:
  int64_t bytes(size_t entry, const ScoredModel& model) const;
  struct Part;
  std::vector<Part> parts_of_entry(size_t entry) const;
  const Tokenizer& tokenizer(size_t entry, const std::string& path);
  ScoredModel model(Backend& backend, const Tensor& master_weights) const;

  const RunConfig& config_;
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers_;  // by path in the config
  std::vector<std::unique_ptr<TextEvaluation>> texts_;  // of each entry; null: not of texts
};

/// " exact match 0.5000 ± 0.0500 loss 0.6931": the numbers of a row that have an error.
std::string numbers_line(const nlohmann::ordered_json& row);

}  // namespace bamtrain

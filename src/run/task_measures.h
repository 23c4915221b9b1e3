#pragma once
// What eval.tasks asks for, while a run trains and at its end.

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
  /// Reads the files that entries name. Error naming the entry: (ExitCode::config) what could not
  /// be measured, and what the files are not, as open_text_evaluation, open_tokenizer.
  TaskMeasures(const RunConfig& config, Backend& backend);

  /// Whether an entry's turn is after `step` steps.
  bool due(int64_t step) const;

  /// The entries whose turn it is, on sequences drawn for this: {"copy@64": as score_task, ...}, by
  /// a backend on the trainer's device that is not the trainer's. Collective, on all processes the
  /// same.
  nlohmann::ordered_json measure(const Trainer& trainer, Backend& beside, Communicator& comm,
                                 int64_t step) const;

  /// All entries, of the checkpoint in `folder`, which rank 0 reads. What `results`, rank 0's, has
  /// of these weights already is not measured again; each result is on the disk before the next
  /// begins. `tell` gets a line for each, on rank 0. Collective. Error (checkpoint, io, device).
  void measure_at_end(Backend& backend, Communicator& comm, const std::string& folder,
                      Results* results, const std::function<void(const std::string&)>& tell) const;

  /// Memory of the evaluation of the entries, beside that of the steps (while a run trains) and
  /// after it, with the master_weights (at its end).
  struct Memory {
    int64_t beside = 0, after = 0;
    std::vector<int64_t> of_entries = {};  // after it; `after` is the most of them
  };
  /// Error (ExitCode::device) at an entry whose sizes overflow.
  Memory memory(Backend& backend) const;
  /// Error (ExitCode::device) at the entry that asks for more at the run's end than the backend
  /// has.
  static void check_fits(const Memory& memory, Backend& backend);

  /// What the entries' files are, which all processes must have alike.
  std::vector<Fact> facts() const;

 private:
  int64_t bytes(size_t entry, const ScoredModel& model) const;
  struct Part;
  std::vector<Part> parts_of_entry(size_t entry) const;
  const Tokenizer& tokenizer(size_t entry, const std::string& path);
  ScoredModel model(Backend& backend, const Tensor& master_weights) const;

  const RunConfig& config_;
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers_;  // by path as given
  std::vector<std::unique_ptr<TextEvaluation>> texts_;  // of each entry; null: it has none
};

/// " exact match 0.5000 +- 0.0500 loss 0.6931": the numbers of a row that have an error beside
/// them.
std::string numbers_line(const nlohmann::ordered_json& row);

}  // namespace bamtrain

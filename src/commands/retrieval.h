#pragma once
// Shared by bamtrain eval --task passkey and --task niah: a model that reads prompts in ids of its
// tokenizer, and a result written row by row.

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "commands/eval.h"
#include "commands/eval_result.h"
#include "core/arena.h"
#include "data/tokenizer.h"
#include "eval/task_scores.h"
#include "eval/text_evaluation.h"

namespace bamtrain {

/// The checkpoint to evaluate, with its tokenizer and backend.
class RetrievalModel {
 public:
  /// Does not allocate weights yet. `tokenizer`: its path. If empty, it is searched for; if the
  /// run's data do not name it, that of a passkey task in the training data is used. `writes`: the
  /// model will generate text. Errors as open_checkpoint, trained_config, check_causal_lm,
  /// open_tokenizer, eval_backend, and if `writes` as check_incremental_decoding.
  RetrievalModel(const EvalArguments& arguments, const std::string& tokenizer, bool writes);

  const RunConfig& config() const { return config_; }
  TextIds ids() const { return {*tokenizer_, document_start_}; }

  /// Throws Error (ExitCode::device) if `bytes` plus the weights do not fit in memory.
  void check_memory(int64_t bytes) const;
  /// Loads the weights. Errors as load_master_weights.
  void load();
  /// Before load() only for sizes.
  ScoredModel scored() const {
    return {config_.model, config_.data.sequence_length, *backend_, activation_dtype(precision_),
            master_weights_};
  }
  /// The head of a result: everything except its scores.
  nlohmann::ordered_json facts(const nlohmann::ordered_json& task, int64_t samples,
                               uint64_t seed) const;

 private:
  Checkpoint checkpoint_;
  RunConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<int64_t> document_start_;
  std::unique_ptr<Backend> backend_;
  Precision precision_;
  Arena arena_;
  Tensor master_weights_;
};

/// "scores" holds rows as retrieval_row() returns them, each after its "task" and "length".
/// "depths" holds the depth_means() of each task that has depths. The whole file is rewritten to
/// --output after every row. Rows that a file there has for the same result are kept and not
/// measured again.
class RetrievalResult {
 public:
  /// `names` are the scores' names, the first that of the map. Throws Error (ExitCode::io) if
  /// --output is not writable.
  RetrievalResult(const std::string& output, nlohmann::ordered_json facts,
                  std::vector<TextTaskPart> parts, std::vector<std::string> names, int64_t depths);

  bool has(size_t part) const { return rows_.contains(place_of(part)); }
  void put(size_t part, const nlohmann::ordered_json& scores);
  /// Writes the file once more and prints a line per row, and maps by depth.
  void finish();
  /// Progress of a part that is being computed, on standard error. Must not outlive this object.
  TaskProgress progress(size_t part) const;

 private:
  /// The place of a row: the index of its task in tasks_, and its length.
  using Place = std::pair<size_t, std::optional<int64_t>>;

  Place place_of(const std::string& task, std::optional<int64_t> length) const;
  Place place_of(size_t part) const { return place_of(parts_[part].task, parts_[part].length); }
  nlohmann::ordered_json whole() const;
  void write() const;
  void print() const;

  std::string output_;
  nlohmann::ordered_json facts_;
  std::vector<TextTaskPart> parts_;  // the requested parts
  std::vector<std::string> tasks_;   // their tasks in order, then further tasks in the file
  std::vector<std::string> names_;
  int64_t depths_;
  std::map<Place, nlohmann::ordered_json> rows_;
  ProgressLine line_;
};

}  // namespace bamtrain

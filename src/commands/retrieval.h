#pragma once
// What bamtrain eval --task passkey and --task niah share: a model that reads prompts in ids of its
// tokenizer, and a result that grows by rows.

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

/// The checkpoint that `arguments` name.
class RetrievalModel {
 public:
  /// Takes no memory for weights yet. `tokenizer`: its path; empty: it is looked for, and where the
  /// run's data do not say which it was, that of a passkey task which the run was trained on.
  /// `writes`: it is asked to continue texts. Errors as open_checkpoint, trained_config,
  /// check_causal_lm, open_tokenizer, eval_backend, and where it writes as
  /// check_incremental_decoding.
  RetrievalModel(const EvalArguments& arguments, const std::string& tokenizer, bool writes);

  const RunConfig& config() const { return config_; }
  TextIds ids() const { return {*tokenizer_, document_start_}; }

  /// Error (ExitCode::device) where `bytes` and its weights are more than there is.
  void check_memory(int64_t bytes) const;
  /// Reads the weights. Errors as load_master_weights.
  void load();
  /// Before load() for sizes alone.
  ScoredModel scored() const {
    return {config_.model, config_.data.sequence_length, *backend_, activation_dtype(precision_),
            master_weights_};
  }
  /// The head of a result: all but its scores.
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

/// Rows as retrieval_row() gives them, behind their "task" and "length", under "scores", and where
/// they have depths "depths": of each task depth_means(). Written to --output after every row, each
/// time as a whole. What a file there has of the same result is not asked for again, and stays.
class RetrievalResult {
 public:
  /// `names` of the scores, the first that of the map. Error (ExitCode::io) for an --output that
  /// cannot be written.
  RetrievalResult(const std::string& output, nlohmann::ordered_json facts,
                  std::vector<TextTaskPart> parts, std::vector<std::string> names, int64_t depths);

  bool has(size_t part) const { return rows_.contains(place_of(part)); }
  void put(size_t part, const nlohmann::ordered_json& scores);
  /// Writes the file once more and prints a line for each row, and maps by depth.
  void finish();
  /// Of a part that is being computed, for a terminal on standard error; no longer than this.
  TaskProgress progress(size_t part) const;

 private:
  /// Of a row in the result: its task's among all, its length.
  using Place = std::pair<size_t, std::optional<int64_t>>;

  Place place_of(const std::string& task, std::optional<int64_t> length) const;
  Place place_of(size_t part) const { return place_of(parts_[part].task, parts_[part].length); }
  nlohmann::ordered_json whole() const;
  void write() const;
  void print() const;

  std::string output_;
  nlohmann::ordered_json facts_;
  std::vector<TextTaskPart> parts_;  // those that are asked for
  std::vector<std::string> tasks_;   // of them, in their order; then those that the file has too
  std::vector<std::string> names_;
  int64_t depths_;
  std::map<Place, nlohmann::ordered_json> rows_;
  ProgressLine line_;
};

}  // namespace bamtrain

#pragma once
// Tasks of texts (tasks/text_task.h): what a model does with texts in ids of its tokenizer. A part
// after the other is measured, each of them a row of numbers.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "eval/task_scores.h"
#include "tasks/text_task.h"

namespace bamtrain {

/// How texts become ids.
struct TextIds {
  const Tokenizer& tokenizer;             // outlives what is made with it
  std::optional<int64_t> document_start;  // the id that begins a document, if any
};

class TextEvaluation {
 public:
  virtual ~TextEvaluation() = default;

  const TextTaskRequest& request() const { return request_; }
  const TextIds& ids() const { return ids_; }
  /// As parts_of(request()).
  const std::vector<TextTaskPart>& parts() const { return parts_; }
  /// {"task", <its options>} and the SHA-256 of its files, without the tokenizer, which has one of
  /// its own: what rows are of, beside the model, the samples and the seed.
  virtual nlohmann::ordered_json facts() const = 0;
  /// Prompts at each length, or of the file.
  virtual int64_t samples() const = 0;
  /// Of rows with cells by depth, how many; 0: there are none.
  virtual int64_t depths() const { return 0; }

  /// The texts that score(part, TaskSet::test, ...) asks, in its order: each {"task", "length"
  /// where it has one, "depth" where there are, "input", "outputs"}, as prompts/prompt_file.h reads
  /// them. REQUIRES: a task that draws them.
  virtual std::vector<nlohmann::ordered_json> texts(size_t part) const;

  /// Error for what would be refused of a part before anything is computed: at "{KEY}" what only a
  /// tokenizer tells (ExitCode::config), texts that the model does not know (config).
  virtual void check(size_t part, const ScoredModel& model) const = 0;
  /// Memory that score() takes beside the master weights.
  virtual int64_t bytes(size_t part, const ScoredModel& model) const = 0;
  /// A row: its numbers are those of the task, NAME and NAME_error. What is drawn is other in
  /// TaskSet::select, examples of a file are the same. Collective; the same bits for every number
  /// of processes. Error (ExitCode::nonfinite) where log-likelihoods or logits are no numbers, on
  /// all processes. REQUIRES: check().
  virtual nlohmann::ordered_json score(size_t part, TaskSet set, const ScoredModel& model,
                                       const TaskShare& share,
                                       const TaskProgress& progress) const = 0;

 protected:
  TextEvaluation(TextTaskRequest request, const TextIds& ids)
      : request_(std::move(request)), ids_(ids), parts_(parts_of(request_)) {}

  int64_t integer(const std::string& option) const {
    return static_cast<int64_t>(request_.options.number(option));
  }

  TextTaskRequest request_;
  TextIds ids_;
  std::vector<TextTaskPart> parts_;
};

/// Reads the files that it names. Errors: at "{KEY}" (config) what the tokenizer has not; of files,
/// those of prompts/ that read them. REQUIRES: check_text_options() accepts the request.
std::unique_ptr<TextEvaluation> open_text_evaluation(const TextTaskRequest& request,
                                                     const TextIds& ids);

/// Error (ExitCode::device) where so many texts of up to `length` tokens, each as a string and in
/// the line that holds it, do not fit in memory.
void check_texts_fit(int64_t texts, int64_t length);

/// Error (ExitCode::config) where the model knows no text of `tokens`, which `what` has.
void check_text_length(int64_t tokens, const std::string& what, const ScoredModel& model);

// One for each task, of which open_text_evaluation() chooses.
std::unique_ptr<TextEvaluation> passkey_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> needle_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> choice_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> cloze_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> requests_evaluation(const TextTaskRequest& r, const TextIds& ids);

}  // namespace bamtrain

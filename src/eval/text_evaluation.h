#pragma once
// Text tasks (tasks/text_task.h): evaluates a model on tokenized texts, part by part. Each part
// gives a row of numbers.

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

/// How to tokenize texts.
struct TextIds {
  const Tokenizer& tokenizer;             // must outlive everything made with it
  std::optional<int64_t> document_start;  // the id that begins a document, if any
};

class TextEvaluation {
 public:
  virtual ~TextEvaluation() = default;

  const TextTaskRequest& request() const { return request_; }
  const TextIds& ids() const { return ids_; }
  /// As parts_of(request()).
  const std::vector<TextTaskPart>& parts() const { return parts_; }
  /// {"task", <its options>} and the SHA-256 of its files; with model, samples and seed this
  /// identifies the rows. Omits the tokenizer, which has its own hash.
  virtual nlohmann::ordered_json facts() const = 0;
  /// Number of prompts per length, or in the file.
  virtual int64_t samples() const = 0;
  /// Number of depths in rows with cells by depth; 0: no cells.
  virtual int64_t depths() const { return 0; }

  /// The texts of score(part, TaskSet::test, ...), in its order: each {"task", "length" and "depth"
  /// if any, "input", "outputs"}, as read by prompts/prompt_file.h. REQUIRES: a task that draws
  /// texts.
  virtual std::vector<nlohmann::ordered_json> texts(size_t part) const;

  /// Checks a part before anything is computed. Throws Error (ExitCode::config): at "{KEY}" for
  /// what only a tokenizer can tell, and for texts that are too long for the model.
  virtual void check(size_t part, const ScoredModel& model) const = 0;
  /// Memory of score() in addition to the master weights.
  virtual int64_t bytes(size_t part, const ScoredModel& model) const = 0;
  /// Returns a row with the task's numbers, NAME and NAME_error. TaskSet::select draws other
  /// prompts; examples from a file are the same. Collective; bitwise identical for any number of
  /// processes. Throws Error (ExitCode::nonfinite) on all processes if log-likelihoods or logits
  /// are not finite. REQUIRES: check().
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

/// Opens the evaluation and reads its files. Errors: at "{KEY}" (config) for what the tokenizer
/// lacks; for files, those of their readers in prompts/. REQUIRES: check_text_options() accepts the
/// request.
std::unique_ptr<TextEvaluation> open_text_evaluation(const TextTaskRequest& request,
                                                     const TextIds& ids);

/// Throws Error (ExitCode::device) if `texts` texts of up to `length` tokens, each held as a string
/// and in its line, do not fit in memory.
void check_texts_fit(int64_t texts, int64_t length);

/// Throws Error (ExitCode::config) if the model does not support `tokens` tokens, which `what` has.
void check_text_length(int64_t tokens, const std::string& what, const ScoredModel& model);

// Factories, one per task; open_text_evaluation() chooses one.
std::unique_ptr<TextEvaluation> passkey_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> needle_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> choice_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> cloze_evaluation(const TextTaskRequest& r, const TextIds& ids);
std::unique_ptr<TextEvaluation> requests_evaluation(const TextTaskRequest& r, const TextIds& ids);

}  // namespace bamtrain

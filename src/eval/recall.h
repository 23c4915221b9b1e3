#pragma once
// RULER's score: how many of the expected answers occur in a model's continuations.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "eval/task_scores.h"
#include "prompts/text_prompt.h"

namespace bamtrain {

/// Prompts as token ids.
struct RecallPrompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<std::string>> references;  // at least one per prompt
  int64_t most = 1;                                  // most tokens of an answer
  bool any = false;  // any single reference suffices: string_match_any()

  /// Encodes the text as Prompt does (eval/generate.h); the same errors.
  void add(const TextPrompt& prompt, const Tokenizer& tokenizer,
           std::optional<int64_t> document_start, const std::string& where);
  /// Number of ids of the longest prompt.
  int64_t longest() const;
};

/// Returns string_match(), or string_match_any(), of each prompt's greedy continuation. A
/// continuation ends after `most` tokens, at the document-start id or at the tokenizer's EOS. Ids
/// outside the tokenizer's vocabulary are never generated. Errors and requirements: as
/// greedy_decode().
std::vector<double> recalls(const RecallPrompts& prompts, const Tokenizer& tokenizer,
                            const ScoredModel& model, std::optional<int64_t> document_start,
                            const TaskShare& share, const TaskProgress& progress);

}  // namespace bamtrain

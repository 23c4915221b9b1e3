#pragma once
// How much of what prompts ask for is in what a model writes behind them: RULER's score.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "eval/task_scores.h"
#include "prompts/text_prompt.h"

namespace bamtrain {

/// Prompts as a model reads them.
struct RecallPrompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<std::string>> references;  // of each, one at least
  int64_t most = 1;                                  // tokens of an answer
  bool any = false;  // whether any of the references will do: string_match_any()

  /// Reads the text as Prompt does (eval/generate.h); errors as there.
  void add(const TextPrompt& prompt, const Tokenizer& tokenizer,
           std::optional<int64_t> document_start, const std::string& where);
  /// Ids of the longest.
  int64_t longest() const;
};

/// Of each prompt the string_match(), or that of any, of its greedy continuation, which ends after
/// `most` tokens, at an id that begins a document and at the tokenizer's EOS; ids past the
/// tokenizer's are not written. Errors and what is required as greedy_decode().
std::vector<double> recalls(const RecallPrompts& prompts, const Tokenizer& tokenizer,
                            const ScoredModel& model, std::optional<int64_t> document_start,
                            const TaskShare& share, const TaskProgress& progress);

}  // namespace bamtrain

#include "eval/recall.h"

#include <algorithm>

#include "core/error.h"
#include "eval/generate.h"
#include "eval/greedy_decoding.h"
#include "prompts/string_match.h"

namespace bamtrain {

void RecallPrompts::add(const TextPrompt& prompt, const Tokenizer& tokenizer,
                        std::optional<int64_t> document_start, const std::string& where) {
  ids.push_back(Prompt(tokenizer, document_start, prompt.text, where).ids);
  references.push_back(prompt.outputs);
}

int64_t RecallPrompts::longest() const {
  size_t most = 0;
  for (const auto& of_prompt : ids) most = std::max(most, of_prompt.size());
  return static_cast<int64_t>(most);
}

std::vector<double> recalls(const RecallPrompts& prompts, const Tokenizer& tokenizer,
                            const ScoredModel& model, std::optional<int64_t> document_start,
                            const TaskShare& share, const TaskProgress& progress) {
  require(prompts.ids.size() == prompts.references.size(), "references of each prompt");
  GreedyDecodingLimits limits = {
      prompts.most, std::min(model.config.outputs(), tokenizer.vocab()), {tokenizer.eos()}};
  if (document_start) limits.ends.push_back(static_cast<int32_t>(*document_start));
  const auto written = greedy_decode(prompts.ids, limits, model, document_start, share, progress);
  std::vector<double> out;
  for (size_t i = 0; i < written.size(); ++i) {
    std::string text;
    for (const int32_t id : written[i]) text += tokenizer.bytes(id, false);
    out.push_back(prompts.any ? string_match_any(text, prompts.references[i])
                              : string_match(text, prompts.references[i]));
  }
  return out;
}

}  // namespace bamtrain

// BAM's passkey task: retrieval of a number inside filler text, against length and depth.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/options_json.h"
#include "eval/passkey_scores.h"
#include "eval/retrieval_scores.h"
#include "eval/text_evaluation.h"
#include "model/incremental_decoder.h"
#include "prompts/passkey_task.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

class PasskeyEvaluation final : public TextEvaluation {
 public:
  PasskeyEvaluation(const TextTaskRequest& r, const TextIds& ids)
      : TextEvaluation(r, ids), passkey_(ids.tokenizer, passkey_options(r.options)) {
    prompts_.depths = integer("depths");
    prompts_.samples = r.samples.value_or(1);
    prompts_.seed = r.seed;
    prompts_.generate = r.options.flag("generate");
  }

  ordered_json facts() const override {
    ordered_json task = {{"task", "passkey"}};
    task.update(options_json(request_.info->options, request_.options));
    task.erase("tokenizer");
    return task;
  }
  int64_t samples() const override { return prompts_.samples; }
  int64_t depths() const override { return prompts_.depths; }
  std::vector<ordered_json> texts(size_t part) const override {
    const int64_t length = *parts_[part].length;
    check_texts_fit(prompts_.depths * prompts_.samples, length);
    std::vector<ordered_json> out;
    for (const PasskeyPrompt& p : passkey_prompts(passkey_, prompts_, length)) {
      const int64_t depth = std::ssize(out) / prompts_.samples;
      out.push_back({{"task", "passkey"},
                     {"length", length},
                     {"depth", depth_of(depth, prompts_.depths)},
                     {"input", ids_.tokenizer.decode(p.prompt) + " " +
                                   p.key.substr(0, static_cast<size_t>(p.given - 1))},
                     {"outputs", {p.key.substr(static_cast<size_t>(p.given - 1))}}});
    }
    return out;
  }

  void check(size_t part, const ScoredModel& model) const override {
    if (prompts_.generate) check_incremental_decoding(model.config);
    const int64_t length = *parts_[part].length;
    check_text_length(passkey_text(passkey_, length), fmt::format("length {}", length), model);
  }
  int64_t bytes(size_t part, const ScoredModel& model) const override {
    return passkey_scores_bytes(passkey_, prompts_, *parts_[part].length, model);
  }
  ordered_json score(size_t part, TaskSet set, const ScoredModel& model, const TaskShare& share,
                     const TaskProgress& progress) const override {
    PasskeyRequest request = prompts_;
    request.set = set;
    return score_passkey(passkey_, request, *parts_[part].length, model, ids_.document_start, share,
                         progress);
  }

 private:
  Passkey passkey_;
  PasskeyRequest prompts_;
};

}  // namespace

std::unique_ptr<TextEvaluation> passkey_evaluation(const TextTaskRequest& r, const TextIds& ids) {
  return std::make_unique<PasskeyEvaluation>(r, ids);
}

}  // namespace bamtrain

#include <algorithm>
#include <map>

#include "config/config_checks.h"
#include "core/abbreviate.h"
#include "core/join.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

class EvaluationChecks : ConfigChecks {
 public:
  using ConfigChecks::ConfigChecks;

  void check() const {
    validation();
    if (use_ == ConfigUse::training) {  // an evaluation has its own lengths
      lengths();
      tasks();
    }
    samples();
  }

 private:
  /// The number of positions that a prior supports and the key that sets it; 0: unlimited.
  struct PositionLimit {
    int64_t most = 0;
    std::string prior, key;
  };

  /// The smallest limit of the model's priors.
  PositionLimit position_limit() const {
    PositionLimit limit;
    for (size_t i = 0; i < priors().size(); ++i) {
      const PriorChoice& prior = priors()[i];
      PositionLimit own = {0, prior.name(), base_path(i)};
      const auto* const embedding = prior.info().as<EmbeddingFamily>();
      const Randomization random = randomization(prior);
      if (random.what == Randomized::positions && random) {
        own.most = random.range;
        own.key += ".randomized_length";
      } else if (embedding && !embedding->value) {
        own.most = prior.parameters(shape()).at(0).shape.at(0);
        own.key += ".positions";
      }
      if (own.most > 0 && (limit.most == 0 || own.most < limit.most)) limit = own;
    }
    return limit;
  }

  void validation() const {
    const EvalConfig& e = c_.eval;
    if (use_ == ConfigUse::training && e.lengths.empty() && e.length_tokens.value_or(0) != 0) {
      refuse("eval.length_tokens", "0 or null without eval.lengths, which it configures",
             text(*e.length_tokens), "set eval.lengths, or remove it");
    }
    if (use_ == ConfigUse::training && e.last_tokens != 0) {
      const auto shortest = std::min_element(e.lengths.begin(), e.lengths.end());
      if (shortest == e.lengths.end() || *shortest < e.last_tokens) {
        refuse("eval.last_tokens",
               shortest == e.lengths.end()
                   ? "0 without eval.lengths, which it configures"
                   : "at most the shortest of eval.lengths, " + text(*shortest),
               text(e.last_tokens), "set eval.lengths, or lower it");
      }
    }
    const bool wanted =
        e.every != 0 || e.tokens != 0 || !e.lengths.empty() || e.length_tokens.value_or(0) != 0;
    if (!c_.data.validates() && wanted) {
      refuse("data.val", "shards or a task for the validation that eval asks for", "an empty value",
             "set data.val, or remove eval.every, eval.tokens, eval.lengths and "
             "eval.length_tokens");
    }
    if (use_ == ConfigUse::training && c_.data.val_task && !e.lengths.empty()) {
      refuse("eval.lengths",
             "an empty list with a task in data.val: lengths need documents in shards",
             text(std::ssize(e.lengths)) + " lengths", "remove it");
    }
    if (e.tokens != 0 && e.tokens < c_.data.sequence_length) {
      refuse("eval.tokens", "0 or at least data.sequence_length = " + text(c_.data.sequence_length),
             text(e.tokens), "raise it: a pass needs one whole sequence");
    }
  }

  void lengths() const {
    const EvalConfig& e = c_.eval;
    for (size_t i = 0; i < priors().size() && !e.lengths.empty(); ++i) {
      if (!randomization(priors()[i]).in_evaluation) continue;
      refuse(base_path(i) + ".eval_positions",
             "\"counted\" with eval.lengths: perplexity needs consecutive positions", "\"drawn\"",
             "change one of them");
    }
    const PositionLimit limit = position_limit();
    for (const int64_t length : e.lengths) {
      if (limit.most != 0 && length > limit.most) {
        refuse("eval.lengths",
               "lengths up to the " + text(limit.most) + " positions of the \"" + limit.prior +
                   "\" prior",
               text(length), "remove the longer ones, or raise " + limit.key);
      }
      visible_keys("eval.lengths", length);
    }
  }

  static double depths_of(const TaskEvaluation& e) {
    const auto* const texts = std::get_if<TextTaskRequest>(&e.request);
    return texts != nullptr && texts->options.has("depths") ? texts->options.number("depths") : 0;
  }

  void tasks() const {
    const EvalConfig& e = c_.eval;
    const PositionLimit limit = position_limit();
    std::map<std::string, size_t> owners;  // task index by result name
    std::map<std::string, size_t> maps;    // first task index by retrieval map
    for (size_t i = 0; i < e.tasks.size(); ++i) {
      const std::string entry = "eval.tasks[" + std::to_string(i) + "]";
      const std::string& name = std::visit(
          [](const auto& r) -> const std::string& { return r.name; }, e.tasks[i].request);
      result_name(name, entry);
      for (const std::string& result : results_of(e.tasks[i])) {
        const auto [owner, is_new] = owners.emplace(result, i);
        if (!is_new) {
          refuse(entry + ".name",
                 "a name other than that of eval.tasks[" + std::to_string(owner->second) +
                     "], which shares a length with it",
                 "\"" + abbreviate(name) + "\"", "rename one of them");
        }
        const auto [first, is_first] = maps.emplace(result.substr(0, result.rfind('@')), i);
        const double depths = depths_of(e.tasks[i]), others = depths_of(e.tasks[first->second]);
        if (!is_first && depths != others) {
          refuse(entry + ".depths",
                 text(static_cast<int64_t>(others)) + ", as eval.tasks[" +
                     std::to_string(first->second) + "] has under the same name",
                 text(static_cast<int64_t>(depths)), "rename one of them");
        }
      }
      if (std::holds_alternative<TextTaskRequest>(e.tasks[i].request)) {
        of_texts(entry);
        continue;
      }
      const auto& r = std::get<TaskRequest>(e.tasks[i].request);
      task(*r.task.info, entry);
      const int64_t most = r.task.info->most_inputs(r.lengths.back());
      if (limit.most != 0 && most > limit.most) {
        refuse(entry + ".lengths",
               "sequences of up to the " + text(limit.most) + " positions of the \"" + limit.prior +
                   "\" prior",
               text(most) + " inputs at length " + text(r.lengths.back()),
               "remove the longer ones, or raise " + limit.key);
      }
      visible_keys(entry + ".lengths", most);
    }
  }

  void result_name(const std::string& name, const std::string& entry) const {
    if (name == kValidationResult || contains(kPerplexityResults, name)) {
      refuse(entry + ".name",
             "a name other than " + std::string(kValidationResult) +
                 " and the perplexity results at eval.lengths, " + join(kPerplexityResults),
             "\"" + name + "\"", "choose another");
    }
    const auto in_names = [](char ch) {
      return static_cast<unsigned char>(ch) > ' ' && ch != '/' && ch != '@' && ch != '\x7f';
    };
    if (!std::all_of(name.begin(), name.end(), in_names)) {
      refuse(entry + ".name", "a name without spaces, / and @, which separate metric names",
             "\"" + abbreviate(name) + "\"", "choose another");
    }
  }

  /// Tasks of texts need a causal decoder. The lengths of texts depend on files and tokenizers
  /// (eval/text_evaluation.h), so they are not checked here.
  void of_texts(const std::string& entry) const {
    if (!causal() || c_.model.kind != ModelKind::decoder) {
      refuse(entry + ".task", "a task the model is trained on: this model does not read text",
             "a text task", "name another");
    }
  }

  /// A scale may support only a limited number of visible keys; a window bounds what a row sees.
  void visible_keys(const std::string& key, int64_t length) const {
    const ScaleChoice& scale = c_.model.attention.scale;
    const auto* const by_length = scale.info().as<LengthKind>();
    if (!by_length || !by_length->longest) return;
    const int64_t longest = by_length->longest(scale.info().constants_of(scale.options, shape()));
    for (const PriorChoice& prior : priors()) {
      const int64_t window =
          prior.info().window_of(prior.options, c_.data.sequence_length, c_.model.attention.window);
      if (c_.model.attention.most_keys(length, window) <= longest) continue;
      refuse(key,
             "lengths with at most " + text(longest) +
                 " visible keys per row, the entries of the \"" + scale.name() + "\" scale",
             text(length), "remove the longer ones, or raise model.attention.scale.lengths");
    }
  }

  void samples() const {
    const SampleConfig& s = c_.sample;
    if (!causal() && !s.prompts.empty()) {
      refuse("sample.prompts",
             "an empty list with model.attention.causal false, which cannot generate text",
             text(std::ssize(s.prompts)) + " prompts", "remove them");
    }
    if (!s.prompts.empty() || (s.every == 0 && s.tokenizer.empty())) return;
    refuse("sample.prompts", "a prompt, since sample.every or sample.tokenizer is set",
           "an empty list",
           "set sample.prompts, [\"\"] for a document from its start, or remove the others");
  }
};

}  // namespace

void check_evaluation(const RunConfig& config, const Origin& origin, ConfigUse use) {
  EvaluationChecks(config, origin, use).check();
}

}  // namespace bamtrain

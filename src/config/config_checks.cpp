#include "config/config_checks.h"

#include "core/error.h"

namespace bamtrain {

void ConfigChecks::refuse(const std::string& key, const std::string& expected,
                          const std::string& found, const std::string& remedy) const {
  throw Error(ExitCode::config, origin_.at(key), expected, found, remedy);
}

Randomization ConfigChecks::randomization(const PriorChoice& prior) const {
  return prior.info().randomization(prior.options, c_.data.sequence_length);
}

std::string ConfigChecks::prior_path(size_t i) const {
  return kPrior + c_.model.attention.prior.place(static_cast<int64_t>(i));
}

std::string ConfigChecks::base_path(size_t i) const {
  const bool mixed = static_cast<bool>(c_.model.attention.prior.mix_of(static_cast<int64_t>(i)));
  return prior_path(i) + (mixed ? ".base" : "");
}

void ConfigChecks::task(const TaskInfo& info, const std::string& key) const {
  if (use_ == ConfigUse::training && counts_whole_sequence(c_.model.attention.normalizer)) {
    refuse("model.attention.normalizer.of",
           "\"row\" with k \"n/2\" and tasks: the padding of their sequences would be counted",
           "\"sequence\"", "set it to \"row\"");
  }
  if (info.of_file) {  // the examples decide whether targets are the next inputs
    if (reads_items()) next_tokens("a file of examples", key);
    return;
  }
  if (info.of_tokenizer) return next_tokens("\"" + info.name + "\", whose answers are text", key);
  if (info.of_items != reads_items()) {
    refuse(key,
           reads_items() ? "the task max_retrieval with model.kind max_retrieval"
                         : "a task of tokens, which a decoder reads",
           "\"" + info.name + "\"" + (reads_items() ? "" : ", whose inputs are items"),
           reads_items() ? "name that task, or remove model.kind"
                         : "set model.kind to max_retrieval, or choose another");
  }
  if (!info.causal && causal()) {
    refuse(key, "a task whose answers depend on earlier tokens only",
           "\"" + info.name + "\", which is bidirectional",
           "set model.attention.causal to false, or choose another");
  }
  if (info.causal && !causal()) {
    refuse("model.attention.causal",
           "true with \"" + info.name + "\" in " + key +
               ": its inputs hold the answers of the positions before them",
           "false", "set it to true, or choose another task");
  }
  if (c_.model.vocab < info.inputs) {
    refuse("model.vocab", "at least the " + text(info.inputs) + " ids of \"" + info.name + "\"",
           text(c_.model.vocab), "raise it");
  }
  if (c_.model.outputs() < info.classes) {
    refuse(c_.model.classes == 0 ? "model.vocab" : "model.classes",
           "at least the " + text(info.classes) + " classes of \"" + info.name + "\"",
           text(c_.model.outputs()), "raise it");
  }
}

/// An evaluation is not checked for what the model was trained on.
void ConfigChecks::next_tokens(const std::string& found, const std::string& key) const {
  if (reads_items() && use_ == ConfigUse::training) {
    refuse(key, "the task max_retrieval with model.kind max_retrieval", found,
           "name that task, or remove model.kind");
  }
  if (causal() || use_ == ConfigUse::evaluation) return;
  refuse(key, "bidirectional tasks with model.attention.causal false",
         found + ", where a position would see the token it has to predict",
         "name such tasks, or remove model.attention.causal");
}

}  // namespace bamtrain

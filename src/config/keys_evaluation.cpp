// Keys of a run configuration: eval, sample, log.

#include "config/evaluations.h"
#include "config/key_table.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key evaluations() {
  const std::string path = "eval.tasks";
  Key k{path,
        "tasks to measure the run on, each at several lengths: at the end and, if an entry sets "
        "every, during training. The results are in results.json of out_dir",
        evaluations_schema()};
  k.get = [](const RunConfig& c) { return evaluations_json(c.eval.tasks); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.eval.tasks = read_evaluations(v, path, origin, c.config_version);
  };
  return k;
}

}  // namespace

std::vector<Key> evaluation_keys() {
  return {
      resumable(key("eval.every", "steps between validation passes; 0: only at the end",
                    integer_value(0, kMaxSteps), FIELD(eval.every))),
      resumable(key("eval.tokens", "tokens per validation pass; 0: the whole validation set",
                    integer_value(0, kMaxTokens), FIELD(eval.tokens))),
      resumable(key("eval.lengths", "lengths at which perplexity is measured at the end",
                    set_of(integer_value(1, kMaxLength)), FIELD(eval.lengths))),
      resumable(key("eval.require_all_lengths",
                    "true: a length that no document of data.val has is an error before the first "
                    "step; false: it is skipped with a warning",
                    boolean_value(), FIELD(eval.require_all_lengths))),
      resumable(key("eval.length_tokens",
                    "for eval.lengths: target tokens per length and protocol; 0: all, of the "
                    "documents that are long enough; null: eval.tokens",
                    or_null(integer_value(0, kMaxTokens)), FIELD(eval.length_tokens))),
      resumable(key("eval.last_tokens",
                    "for eval.lengths: how many tokens at the end of a window the protocol last "
                    "scores. 0: 256, or the shortest length if that is less",
                    integer_value(0, kMaxLength), FIELD(eval.last_tokens))),
      resumable(key(
          "eval.attention",
          "log attention statistics of this many sequences, the first of a validation pass. Per "
          "layer and head: entropy, nonzero keys (support), nonzero blocks (live_tiles). 0: none",
          integer_value(0, kMaxInt32), FIELD(eval.attention))),
      resumable(evaluations()),

      resumable(key("sample.every",
                    "steps between text samples, written to samples.jsonl; 0: only at the end",
                    integer_value(0, kMaxSteps), FIELD(sample.every))),
      resumable(
          key("sample.prompts",
              "prompts to continue; \"\": a document from its start; an empty list: no samples",
              set_of(any_text()), FIELD(sample.prompts))),
      resumable(key("sample.tokenizer",
                    "tokenizer file. Empty: the one that made the shards, found by its SHA-256 in "
                    "out_dir or near the shards",
                    any_text(), FIELD(sample.tokenizer))),
      resumable(key("sample.max_tokens", "tokens per sample; fewer if the model ends the text",
                    integer_value(1, kMaxLength), FIELD(sample.max_tokens))),
      resumable(key("sample.temperature",
                    "divides the logits; 0: greedy, always the most likely token", number_from(0),
                    FIELD(sample.temperature))),
      resumable(key("sample.top_k", "sample from the k most likely tokens; 0: from all",
                    integer_value(0, kMaxInt32), FIELD(sample.top_k))),
      resumable(key("sample.top_p",
                    "then from the smallest set of most likely tokens with this total probability",
                    number_up_to(0, 1), FIELD(sample.top_p))),
      resumable(key("sample.min_p",
                    "then from tokens at least this fraction as likely as the most likely one",
                    number_within(0, 1), FIELD(sample.min_p))),

      resumable(key("log.every",
                    "steps between lines of metrics.jsonl; in between, the GPU is not synchronised",
                    integer_value(1, kMaxSteps), FIELD(log.every))),
      resumable(key("log.tensorboard",
                    "write TensorBoard event files to the folder tensorboard in out_dir",
                    boolean_value(), FIELD(log.tensorboard))),
  };
}

}  // namespace bamtrain

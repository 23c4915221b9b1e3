// Keys of a run configuration: eval, sample, log.

#include "config/evaluations.h"
#include "config/key_table.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key evaluations() {
  const std::string path = "eval.tasks";
  Key k{path,
        "tasks that the run is measured on at lengths, at its end and, where an entry says every, "
        "while it trains: its results are in results.json of out_dir",
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
      resumable(key("eval.every", "steps between validation passes; 0: at the end",
                    integer_value(0, kMaxSteps), FIELD(eval.every))),
      resumable(key("eval.tokens", "tokens of a validation pass; 0: the whole validation set",
                    integer_value(0, kMaxTokens), FIELD(eval.tokens))),
      resumable(key("eval.lengths", "perplexity against length at the end: the lengths",
                    set_of(integer_value(1, kMaxLength)), FIELD(eval.lengths))),
      resumable(key("eval.insist",
                    "whether a length that no document of data.val has ends the run before its "
                    "first step; false: it is left out, with a warning",
                    boolean_value(), FIELD(eval.insist))),
      resumable(key("eval.length_tokens",
                    "targets of perplexity against length, per length and protocol; 0: all of the "
                    "documents that are long enough; null: eval.tokens; for eval.lengths only",
                    or_null(integer_value(0, kMaxTokens)), FIELD(eval.length_tokens))),
      resumable(key("eval.last_tokens",
                    "of perplexity against length, how many of a window's tokens the protocol last "
                    "is about; 0: 256, or the shortest length where that is less",
                    integer_value(0, kMaxLength), FIELD(eval.last_tokens))),
      resumable(key("eval.attention",
                    "sequences, the first of a validation pass, whose attention's entropy, support "
                    "and live tiles it tells, per layer and head; 0: none",
                    integer_value(0, kMaxInt32), FIELD(eval.attention))),
      resumable(evaluations()),

      resumable(key("sample.every",
                    "steps between samples, texts that the model writes to samples.jsonl; 0: at "
                    "the end",
                    integer_value(0, kMaxSteps), FIELD(sample.every))),
      resumable(key("sample.prompts",
                    "texts to continue, \"\": a document from its start; none: no samples",
                    set_of(any_text()), FIELD(sample.prompts))),
      resumable(key("sample.tokenizer",
                    "file of the tokenizer; empty: the one that made the shards, looked for as "
                    "a file of its SHA-256 in their folder and the two around it",
                    any_text(), FIELD(sample.tokenizer))),
      resumable(key("sample.max_tokens", "tokens of a sample, fewer where the model ends it",
                    integer_value(1, kMaxLength), FIELD(sample.max_tokens))),
      resumable(key("sample.temperature",
                    "what logits are divided by; 0: always the likeliest token", number_from(0),
                    FIELD(sample.temperature))),
      resumable(key("sample.top_k", "draw from the k likeliest tokens; 0: from all",
                    integer_value(0, kMaxInt32), FIELD(sample.top_k))),
      resumable(key("sample.top_p",
                    "then from the fewest, likeliest first, that have this share of the "
                    "probability",
                    number_up_to(0, 1), FIELD(sample.top_p))),
      resumable(key("sample.min_p",
                    "then from those at least this many times as likely as the likeliest",
                    number_within(0, 1), FIELD(sample.min_p))),

      resumable(key("log.every",
                    "steps between lines of metrics.jsonl; a GPU is not waited for between",
                    integer_value(1, kMaxSteps), FIELD(log.every))),
      resumable(key("log.tensorboard",
                    "event files for TensorBoard in the folder tensorboard of out_dir",
                    boolean_value(), FIELD(log.tensorboard))),
  };
}

}  // namespace bamtrain

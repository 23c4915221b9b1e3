// Every key of a run configuration, once: a table, and long for that.

#include "config/keys.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "config/evaluations.h"
#include "config/sources.h"
#include "config/task.h"
#include "core/json.h"
#include "core/nearest.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Limits far above any use, as kMaxSteps: beyond them a number is a slip of the keyboard.
constexpr int64_t kMaxTokens = int64_t{1} << 40;
constexpr int64_t kMaxLength = int64_t{1} << 24;
constexpr int64_t kMaxWidth = int64_t{1} << 20;
// What keeps a divisor away from zero is added in fp32, where smaller numbers lose their digits or
// become zero.
constexpr double kMinEps = std::numeric_limits<float>::min();
constexpr double kMaxEps = std::numeric_limits<float>::max();
constexpr int64_t kMaxInt32 = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

template <class T>
struct JsonValue {
  static ordered_json write(const T& v) { return v; }
  static T read(const json& v) { return v.get<T>(); }
};

template <class T>
struct JsonValue<std::optional<T>> {
  static ordered_json write(const std::optional<T>& v) {
    return v ? ordered_json(*v) : ordered_json(nullptr);
  }
  static std::optional<T> read(const json& v) {
    return v.is_null() ? std::optional<T>() : v.get<T>();
  }
};

/// A key stored in the member that `field` selects.
template <class Field>
Key key(const std::string& path, const std::string& description, const ValueSchema& schema,
        Field field) {
  using T = std::decay_t<decltype(field(std::declval<RunConfig&>()))>;
  Key k{path, description, schema};
  k.get = [field](const RunConfig& c) { return JsonValue<T>::write(field(c)); };
  k.set = [field, path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    field(c) = JsonValue<T>::read(v);
  };
  return k;
}

/// A key whose names stand for the enumerators of a member.
template <class Enum, class Field>
Key choice(const std::string& path, const std::string& description,
           const std::vector<std::pair<std::string, Enum>>& names, Field field) {
  std::vector<std::string> words;
  for (const auto& [word, unused] : names) words.push_back(word);
  const ValueSchema schema = one_of(words);
  Key k{path, description, schema};
  k.get = [field, names](const RunConfig& c) -> ordered_json {
    for (const auto& [word, value] : names) {
      if (value == field(c)) return word;
    }
    return nullptr;  // an enumerator that configurations do not offer
  };
  k.set = [field, names, path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    for (const auto& [word, value] : names) {
      if (v == word) field(c) = value;
    }
  };
  return k;
}

/// A key whose value names an entry of a registry, which outlives it.
template <class Info, class Field>
Key mechanism(const std::string& path, const std::string& description,
              const std::vector<Info>& registry, Field field) {
  Key k{path, description, mechanism_schema(mechanisms_of(registry)), true};
  k.get = [field](const RunConfig& c) { return mechanism_json(field(c)); };
  k.set = [field, path, &registry](RunConfig& c, const json& v, const Origin& origin) {
    field(c) = read_mechanism(v, registry, path, origin, c.config_version);
  };
  return k;
}

Key priors() {
  const std::string path = "model.attention.prior";
  Key k{path,
        "positional prior: what position adds to a logit; a list: of the first layers, then over "
        "and over, its length divides model.layers",
        priors_schema(), true};
  k.get = [](const RunConfig& c) { return priors_json(c.model.attention.prior); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.model.attention.prior = read_priors(v, path, origin, c.config_version);
  };
  return k;
}

Key training_sources() {
  const std::string path = "data.train";
  Key k{path,
        "what is trained on: token shards, a folder of *.bin or a glob; a task; or a list of such "
        "with weights",
        sources_schema()};
  k.get = [](const RunConfig& c) { return sources_json(c.data.train); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.data.train = read_sources(v, path, origin, c.config_version);
  };
  return k;
}

Key validation_source() {
  const std::string path = "data.val";
  Key k{path,
        "what is validated on: token shards, a folder of *.bin or a glob; or a task, whose "
        "sequences are others than those of data.train; empty: no validation",
        validation_schema()};
  k.get = [](const RunConfig& c) { return validation_json(c.data); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    read_validation(v, path, origin, c.config_version, &c.data);
  };
  return k;
}

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

/// true stands for what it stood for when it was all that a configuration could say.
Key biases() {
  const std::string path = "model.bias";
  std::vector<std::string> names;
  for (const auto& [name, unused] : kBiasPartNames) names.push_back(name);
  const ValueSchema list = set_of(one_of(names));
  Key k{path,
        "which parts have biases: a list of attention and mlp (their linear layers), norm "
        "(layernorm) and head; true: all but the head; that of k moves every logit of a row alike "
        "unless k is rotated: nothing reads it then, and it drifts with the rounding of its "
        "gradient",
        {{"oneOf", {boolean_value(), list}}}};
  k.get = [](const RunConfig& c) -> ordered_json {
    const BiasParts& bias = c.model.bias;
    for (const bool all : {false, true}) {
      if (bias == BiasParts(all)) return all;
    }
    ordered_json parts = ordered_json::array();
    for (const auto& [name, part] : kBiasPartNames) {
      if (bias.*part) parts.push_back(name);
    }
    return parts;
  };
  k.set = [path, list](RunConfig& c, const json& v, const Origin& origin) {
    if (!v.is_array()) {
      check_value(v, boolean_value(), origin.at(path));
      c.model.bias = v.get<bool>();
      return;
    }
    check_value(v, list, origin.at(path));
    c.model.bias = BiasParts();
    for (const auto& [name, part] : kBiasPartNames) {
      c.model.bias.*part = std::find(v.begin(), v.end(), name) != v.end();
    }
  };
  return k;
}

Key betas() {
  const std::string path = "optimizer.betas";
  const ValueSchema schema = tuple_of(number_in_range(0, 1), 2);
  Key k{path, "decay rates of the first and second moment", schema};
  k.get = [](const RunConfig& c) {
    return ordered_json::array({c.optimizer.beta1, c.optimizer.beta2});
  };
  k.set = [path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    c.optimizer.beta1 = v[0].get<double>();
    c.optimizer.beta2 = v[1].get<double>();
  };
  return k;
}

Key required(Key k) {
  k.required = true;
  return k;
}

Key needed(bool (*of)(const json& document), Key k) {
  k.needed = of;
  return k;
}

/// Whether what a task says is left to the configuration, since it has shards.
bool trains_on_shards(const json& document) {
  const json* train = find_value(document, "data.train");
  if (train == nullptr) return true;
  if (!train->is_array()) return !is_task(*train);
  return std::any_of(train->begin(), train->end(), [](const json& s) { return !is_task(s); });
}

bool counts_no_sequences(const json& document) {
  return find_value(document, "train.sequences_per_step") == nullptr;
}

// Selects a member of RunConfig, const or not.
#define FIELD(member) \
  [](auto& c) -> auto& { return c.member; }

Key tokenizer_of_weights() {
  return choice<bool>("init_from.tokenizer",
                      "of which tokenizer the folder's model is; same: that of the shards of "
                      "data.train, by SHA-256, where both tell theirs; any: of another too",
                      {{"same", false}, {"any", true}}, FIELD(init_from.any_tokenizer));
}

/// A resumed run may differ here.
Key resumable(Key k) {
  k.free_on_resume = true;
  return k;
}

std::vector<Key> make_keys() {
  return {
      // First: the defaults of what follows are those of its version.
      required(key("config_version",
                   "version of this format, whose defaults and rules a run keeps when a newer "
                   "program resumes it; 1: other defaults where that is said, and wsd's decay one "
                   "step later",
                   integer_value(1, kConfigVersion), FIELD(config_version))),
      resumable(key("name", "a label, for logs and tables", any_text(), FIELD(name))),
      key("seed", "seed of initial values and of the order of the data",
          integer_value(0, kMaxInt64), FIELD(seed)),
      resumable(choice<DeviceKind>("device",
                                   "auto: a GPU where there is one, else the CPU; "
                                   "check: two backends side by side",
                                   kDeviceNames, FIELD(device))),
      required(resumable(key("out_dir", "folder for checkpoints and metrics.jsonl", nonempty_text(),
                             FIELD(out_dir)))),

      choice<ModelKind>("model.kind",
                        "decoder; or max_retrieval, the model of the task of that name, which is "
                        "one attention between networks of one hidden layer: width is that of the "
                        "attention, mlp theirs, layers and heads are 1, and keys that would do "
                        "nothing are refused",
                        kModelKindNames, FIELD(model.kind)),
      needed(trains_on_shards,
             key("model.vocab",
                 "vocabulary size V, at least the tokenizer's; needed with shards; 0: as many as "
                 "the tasks of data.train have",
                 integer_value(0, kMaxInt32), FIELD(model.vocab))),
      key("model.classes",
          "classes that the head tells apart, where the answers of the tasks of data.train are of "
          "another alphabet than what is read; 0: as many as those tasks have, and model.vocab "
          "with shards",
          integer_value(0, kMaxInt32), FIELD(model.classes)),
      required(
          key("model.width", "embedding width C", integer_value(1, kMaxWidth), FIELD(model.width))),
      required(
          key("model.layers", "number of blocks L", integer_value(1, 4096), FIELD(model.layers))),
      required(key("model.heads",
                   "query heads H; divides model.width unless model.head_dim is given",
                   integer_value(1, 4096), FIELD(model.heads))),
      key("model.kv_heads",
          "key and value heads of grouped-query attention; divides model.heads; 0: as many as "
          "heads",
          integer_value(0, 4096), FIELD(model.kv_heads)),
      key("model.head_dim", "width D of a head; 0: model.width / model.heads",
          integer_value(0, kMaxWidth), FIELD(model.own_head_dim)),
      choice<MlpKind>("model.mlp.kind",
                      "swiglu and geglu (tanh) are gated, with three matrices; gelu (tanh), "
                      "gelu_erf (x Phi(x)) and relu have two",
                      kMlpNames, FIELD(model.mlp.kind)),
      required(key("model.mlp.hidden", "hidden width of the MLP", integer_value(1, kMaxWidth),
                   FIELD(model.mlp.hidden))),
      choice<NormKind>("model.norm.kind", "normalization; model.norm_position: of what",
                       {{"rmsnorm", NormKind::rmsnorm}, {"layernorm", NormKind::layernorm}},
                       FIELD(model.norm.kind)),
      key("model.norm.eps", "added to the variance, in fp32", number_within(kMinEps, kMaxEps),
          FIELD(model.norm.eps)),
      choice<NormPosition>(
          "model.norm_position",
          "where norms stand, f being attention, then the MLP: pre: x += f(norm(x)), and a norm "
          "before the head; post: x = norm(x + f(x)), none before the head; both: x += "
          "norm(f(norm(x))), and one before the head",
          kNormPositionNames, FIELD(model.norm_position)),
      key("model.embed_scale",
          "embeddings of tokens are multiplied by sqrt(C), before those of positions are added; a "
          "tied head is not",
          boolean_value(), FIELD(model.embed_scale)),
      key("model.tied", "the head shares the embedding's matrix", boolean_value(),
          FIELD(model.tied)),
      biases(),
      choice<InitKind>("model.init",
                       "initial values: gpt2 (std 0.02, residual projections x (2L)^-0.5), torch "
                       "(linear U(+-1/sqrt(fan_in)), embedding N(0, 1)), neox (std sqrt(2/5C), "
                       "residual projections 2/(L sqrt C)), plain (std 0.02), lecun (linear std "
                       "1/sqrt(fan_in), embedding std 0.02, both cut off at two of these without "
                       "making up for it)",
                       {{"gpt2", InitKind::gpt2},
                        {"torch", InitKind::torch},
                        {"neox", InitKind::neox},
                        {"plain", InitKind::plain},
                        {"lecun", InitKind::lecun}},
                       FIELD(model.init)),
      priors(),
      mechanism("model.attention.scale", "logit scale t_i of a query that sees n_i keys",
                all_scales(), FIELD(model.attention.scale)),
      mechanism("model.attention.normalizer", "how the logits of a row become weights",
                all_normalizers(), FIELD(model.attention.normalizer)),
      key("model.attention.window",
          "a key is visible iff i - j < window, in layers whose prior sets no window of its own; "
          "0: all keys are",
          integer_value(0, kMaxLength), FIELD(model.attention.window)),
      key("model.attention.document_mask",
          "attention, n_i and absolute positions restart where a document begins", boolean_value(),
          FIELD(model.attention.document_mask)),
      key("model.attention.causal",
          "whether a position sees only itself and those before it; false: its whole sequence "
          "without padding, or document, with distances |i - j|",
          boolean_value(), FIELD(model.attention.causal)),

      resumable(key("init_from.folder",
                    "start from the weights in this folder: model.safetensors, or shards with "
                    "model.safetensors.index.json, as bamtrain export and Hugging Face's Llamas "
                    "have them (docs/export.md), in F32, BF16 or F16; a resumed run does not read "
                    "it; empty: initial values",
                    any_text(), FIELD(init_from.folder))),
      resumable(
          key("init_from.new",
              "parameters that the folder has not and that keep their initial values: prior, mix "
              "(of prior, what mixes heads beside its base), scale, normalizer, or names of "
              "parameters of those chosen (theta_alpha)",
              set_of(nonempty_text()), FIELD(init_from.absent))),
      resumable(key("init_from.optimizer",
                    "whether the folder is a checkpoint whose moments, and number of steps, the "
                    "optimizer goes on with: of the same name and betas, on the same trained "
                    "parameters",
                    boolean_value(), FIELD(init_from.optimizer))),
      resumable(key("init_from.model_type",
                    "whose names and computation a folder has that has neither a config.json with "
                    "a model_type nor the state.json of a checkpoint; empty: it has one",
                    one_of({"", "llama", "gpt2"}), FIELD(init_from.model_type))),
      resumable(tokenizer_of_weights()),

      required(resumable(training_sources())),
      resumable(validation_source()),
      needed(
          trains_on_shards,
          key("data.sequence_length",
              "tokens per training sequence T, of tasks at most; needed with shards; 0: the most "
              "that a task's sequences have",
              integer_value(0, kMaxLength), FIELD(data.sequence_length))),
      key("data.document_start", "token id that begins a document; null: from the shards' manifest",
          or_null(integer_value(0, kMaxInt32)), FIELD(data.document_start)),
      key("data.shuffle", "sequences permuted anew each epoch instead of in file order",
          boolean_value(), FIELD(data.shuffle)),
      resumable(
          key("data.verify",
              "shards that have a manifest are compared with its SHA-256 while the run trains",
              boolean_value(), FIELD(data.verify))),

      choice<OptimizerKind>("optimizer.name", "both with decoupled weight decay",
                            {{"radam", OptimizerKind::radam}, {"adamw", OptimizerKind::adamw}},
                            FIELD(optimizer.name)),
      key("optimizer.lr", "peak learning rate", number_above(0), FIELD(optimizer.lr)),
      betas(),
      key("optimizer.eps", "added to the root of the second moment, in fp32",
          number_within(kMinEps, kMaxEps), FIELD(optimizer.eps)),
      key("optimizer.weight_decay",
          "decoupled decay of matrices and of embeddings, a learned position table among them, and "
          "of the parameters that decay of a prior, a scale or a normalizer names, where that is "
          "true; not of norms, nor of the biases of linear layers",
          number_from(0), FIELD(optimizer.weight_decay)),
      key("optimizer.clip", "largest global gradient norm; 0: no clipping", number_from(0),
          FIELD(optimizer.clip)),
      key("optimizer.lr_multipliers",
          "factors on the learning rate by group (prior; mix: of prior, what mixes heads beside "
          "its base; scale; normalizer) or by trained parameter of those chosen (theta_alpha); the "
          "parameter wins over the group, mix over prior",
          map_of(number_from(0)), FIELD(optimizer.lr_multipliers)),

      choice<ScheduleKind>("schedule.name",
                           "learning rate after the warm-up; wsd: constant, then a decay",
                           {{"cosine", ScheduleKind::cosine},
                            {"linear", ScheduleKind::linear},
                            {"constant", ScheduleKind::constant},
                            {"wsd", ScheduleKind::wsd}},
                           FIELD(schedule.name)),
      key("schedule.warmup_steps", "steps of linear warm-up", integer_value(0, kMaxSteps),
          FIELD(schedule.warmup_steps)),
      key("schedule.min_ratio",
          "learning rate after the last step, as a fraction of the peak; wsd: at the last step",
          number_within(0, 1), FIELD(schedule.min_ratio)),
      key("schedule.decay_steps", "length of the final decay; for wsd only",
          integer_value(0, kMaxSteps), FIELD(schedule.decay_steps)),
      choice<DecayShape>("schedule.decay_shape", "of the final decay; for wsd only",
                         {{"linear", DecayShape::linear}, {"cosine", DecayShape::cosine}},
                         FIELD(schedule.decay_shape)),

      required(key("train.steps", "optimizer steps of the whole schedule",
                   integer_value(1, kMaxSteps), FIELD(train.steps))),
      resumable(key("train.stop_at",
                    "end with a checkpoint after this step, the schedule still running to "
                    "train.steps; 0: at train.steps",
                    integer_value(0, kMaxSteps), FIELD(train.stop_at))),
      needed(counts_no_sequences,
             key("train.tokens_per_step",
                 "tokens per optimizer step, a multiple of train.micro_batch * "
                 "data.sequence_length; needed without train.sequences_per_step",
                 integer_value(0, kMaxTokens), FIELD(train.tokens_per_step))),
      key("train.sequences_per_step",
          "sequences per optimizer step, in place of train.tokens_per_step: a multiple of "
          "train.micro_batch",
          integer_value(0, kMaxTokens), FIELD(train.sequences_per_step)),
      required(key("train.micro_batch", "sequences in one forward and backward pass",
                   integer_value(1, 1 << 20), FIELD(train.micro_batch))),
      key("train.lanes",
          "partial gradient sums, a power of two that divides the micro-batches of a step; every "
          "number of processes that divides it gives the same bits; 0: the largest up to 8",
          integer_value(0, 1 << 16), FIELD(train.lanes)),
      choice<Reduction>("train.reduction",
                        "how processes add their gradients; tree: the same bits on any number of "
                        "processes; library: MPI's or NCCL's own sum, faster, other bits on other "
                        "numbers of processes",
                        {{"tree", Reduction::tree}, {"library", Reduction::library}},
                        FIELD(train.reduction)),
      choice<Precision>("train.precision",
                        "activations and products; masters and sums stay fp32; tf32: fp32 whose "
                        "products are in TF32, on GPUs",
                        kPrecisionNames, FIELD(train.precision)),
      resumable(choice<Recompute>(
          "train.recompute",
          "what the backward pass computes again to save memory, to the same bits; mlp: the mlps' "
          "hidden layers; block: all but the stream between the blocks",
          {{"none", Recompute::none}, {"mlp", Recompute::mlp}, {"block", Recompute::block}},
          FIELD(train.recompute))),

      resumable(key("checkpoint.every", "steps between checkpoints; 0: at the end and on signals",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.every))),
      resumable(key("checkpoint.keep",
                    "newest checkpoints kept, and one more until a loss of the newest was seen",
                    integer_value(1, kMaxInt32), FIELD(checkpoint.keep))),
      resumable(key("checkpoint.keep_every",
                    "checkpoints whose step divides by this are kept for good; a multiple of "
                    "checkpoint.every; 0: none",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.keep_every))),
      resumable(key("checkpoint.resume",
                    "auto: the newest good checkpoint of out_dir if any; never: an error where "
                    "out_dir is not empty; else a checkpoint folder",
                    nonempty_text(), FIELD(checkpoint.resume))),
      resumable(key("checkpoint.allow_change",
                    "keys, or groups of keys, that may differ from the run that is resumed",
                    set_of(nonempty_text()), FIELD(checkpoint.allow_change))),
      resumable(key("checkpoint.best.metric",
                    "of validation, as validation/loss, or of a task of eval.tasks that is "
                    "measured every some steps, as copy@128/exact_match: the checkpoint at which "
                    "it was best is kept, and is the one that the results at the end are of; "
                    "empty: the last is",
                    any_text(), FIELD(checkpoint.best_metric))),
      resumable(choice<bool>("checkpoint.best.mode", "what is best of it",
                             {{"min", false}, {"max", true}}, FIELD(checkpoint.best_is_highest))),

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

#undef FIELD

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// See unknown_key_remedy; empty where no name shares anything with the path.
std::string nearest_path(const std::string& path) {
  const std::string name = last_name(path);
  const std::string prefix = path.substr(0, path.size() - name.size());
  const std::string group = prefix.substr(0, prefix.find_last_not_of('.') + 1);
  const size_t near = std::max<size_t>(1, name.size() / 3);
  const std::string sibling = nearest_name(name, members(group));
  if (!sibling.empty()) return prefix + sibling;
  std::string best;
  size_t best_distance = near + 1;
  std::vector<std::string> paths;
  for (const Key& k : all_keys()) {
    paths.push_back(k.path);
    const size_t distance = edit_distance(name, last_name(k.path));
    if (distance < best_distance) {
      best = k.path;
      best_distance = distance;
    }
  }
  for (const KeyGroup& g : all_groups()) paths.push_back(g.path);
  return best.empty() ? nearest_name(path, paths) : best;
}

}  // namespace

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

const std::vector<KeyGroup>& all_groups() {
  static const std::vector<KeyGroup> groups = {
      {"model", "the model"},
      {"model.mlp", "the feed-forward half of a block"},
      {"model.norm", "the norms"},
      {"model.attention", "prior x scale x normalizer x mask"},
      {"init_from", "what a new run starts from"},
      {"data", "what is trained on"},
      {"optimizer", "the step from gradients to weights"},
      {"schedule", "the learning rate over the run"},
      {"train", "length and shape of the run"},
      {"checkpoint", "what is saved, kept and resumed from"},
      {"checkpoint.best", "which checkpoint is kept beside the newest"},
      {"eval", "validation, and what is measured at the end"},
      {"sample", "texts that the model writes while it is trained"},
      {"log", "what is written while training"},
  };
  return groups;
}

const Key* find_key(const std::string& path) {
  for (const Key& k : all_keys()) {
    if (k.path == path) return &k;
  }
  return nullptr;
}

const Key* find_owner(const std::string& path) {
  for (const Key& k : all_keys()) {
    if (lies_in(path, k.path)) return &k;
  }
  return nullptr;
}

bool is_group(const std::string& path) {
  const std::vector<KeyGroup>& groups = all_groups();
  return std::any_of(groups.begin(), groups.end(),
                     [&path](const KeyGroup& g) { return g.path == path; });
}

std::vector<std::string> members(const std::string& group) {
  const std::string prefix = group.empty() ? "" : group + ".";
  std::vector<std::string> names;
  for (const Key& k : all_keys()) {
    if (k.path.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = k.path.substr(prefix.size());
    const std::string name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string unknown_key_remedy(const std::string& path) {
  const std::string near = nearest_path(path);
  return near.empty() ? "remove it; --print-schema lists every key"
                      : "did you mean \"" + near + "\"?";
}

int64_t config_version_of(const json& document) {
  const json* found = find_value(document, "config_version");
  if (found == nullptr || !is_whole(*found)) return kConfigVersion;
  return *found >= 1 && *found < kConfigVersion ? found->get<int64_t>() : kConfigVersion;
}

RunConfig default_run_config(int64_t version) {
  RunConfig c;
  c.config_version = version;
  c.model.attention.prior = PriorChoice(*find_prior("nope"));
  c.model.attention.scale = ScaleChoice(*find_scale("none"));
  c.model.attention.normalizer = NormalizerChoice(*find_normalizer("softmax"));
  return c;
}

}  // namespace bamtrain

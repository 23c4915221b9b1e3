#include "config/validate.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "config/keys.h"
#include "config/max_retrieval.h"
#include "config/mechanism.h"
#include "config/names.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

constexpr char kPrior[] = "model.attention.prior";

std::string text(int64_t n) { return std::to_string(n); }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The divisors of n next to m, for a remedy: "8 or 12".
std::string divisors_near(int64_t n, int64_t m) {
  int64_t below = std::min(m, n), above = m;
  while (below > 1 && n % below != 0) --below;
  while (above <= n && n % above != 0) ++above;
  return text(below) + (above <= n ? " or " + text(above) : "");
}

class Relations {
 public:
  Relations(const RunConfig& config, const Origin& origin, ConfigUse use)
      : c_(config), origin_(origin), use_(use) {}

  std::vector<std::string> multiplier_names() const { return mechanism_names(Named::trained); }

  void check() const {
    if (reads_items()) check_max_retrieval(c_, origin_);
    heads();
    mechanisms();
    data();
    schedule();
    batches();
    checkpoints();
    evaluation();
    samples();
    multipliers();
    init_from();
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& expected,
                           const std::string& found, const std::string& remedy) const {
    throw Error(ExitCode::config, origin_.at(key), expected, found, remedy);
  }

  bool reads_items() const { return c_.model.kind == ModelKind::max_retrieval; }

  void heads() const {
    const ModelConfig& m = c_.model;
    if (m.own_head_dim == 0 && m.width % m.heads != 0) {
      refuse(
          "model.heads", "a divisor of model.width = " + text(m.width) + " without model.head_dim",
          text(m.heads),
          "use " + divisors_near(m.width, m.heads) + ", change model.width, or set model.head_dim");
    }
    if (m.kv_heads != 0 && m.heads % m.kv_heads != 0) {
      refuse("model.kv_heads", "a divisor of model.heads = " + text(m.heads), text(m.kv_heads),
             "use " + divisors_near(m.heads, m.kv_heads) + ", or 0 for as many as heads");
    }
  }

  ModelShape shape() const { return c_.model.shape(c_.data.sequence_length); }
  bool causal() const { return c_.model.attention.causal; }

  const std::vector<PriorChoice>& priors() const { return c_.model.attention.prior.pattern; }

  /// Positions that a prior knows and the key that says so; 0: any number.
  struct PositionLimit {
    int64_t most = 0;
    std::string prior, key;
  };

  /// The least of the model's priors.
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

  /// The registries refuse what their mechanisms do not define for this shape.
  void mechanisms() const {
    const ScaleChoice& scale = c_.model.attention.scale;
    if (use_ == ConfigUse::training && scale.info().evaluation_only) {
      refuse("model.attention.scale", "a scale that trains",
             "\"" + scale.name() + "\", for evaluation only",
             "train with another scale, and evaluate with bamtrain eval --set "
             "model.attention.scale=" +
                 scale.name());
    }
    for (size_t i = 0; i < priors().size(); ++i) {
      const auto layer = static_cast<int64_t>(i);
      if (!causal() && priors()[i].info().causal_only) {
        refuse(
            base_path(i), "a prior of keys on both sides with model.attention.causal false",
            "\"" + priors()[i].name() + "\", which has a formula for those before the query alone",
            "choose another, or remove model.attention.causal");
      }
      accept(priors()[i], base_path(i), shape());
      if (const MixChoice& mix = c_.model.attention.prior.mix_of(layer)) {
        accept(mix, prior_path(i), c_.model.attention.prior.mix_shape(layer, shape()));
      }
    }
    accept(scale, "model.attention.scale", shape());
    const NormalizerChoice& normalizer = c_.model.attention.normalizer;
    accept(normalizer, "model.attention.normalizer", shape());
    if (!causal() && traits_of(normalizer.info().kind).causal_only) {
      refuse("model.attention.normalizer",
             "a normalizer of keys on both sides with model.attention.causal false",
             "\"" + normalizer.name() + "\", whose formula goes from the query's key back",
             "choose another, or remove model.attention.causal");
    }
    if (!traits_of(normalizer.info().kind).takes_scale && !scale.info().is<std::monostate>()) {
      throw Error(ExitCode::config,
                  origin_.at("model.attention.scale", "model.attention.normalizer.name"),
                  "\"none\" with " + normalizer.name() + ", which has no temperature",
                  "\"" + scale.name() + "\"",
                  "set model.attention.scale to none, or choose another normalizer");
    }
    if (normalizer.info().kind != NormalizerKind::softmax && scale.info().is<EntropyKind>()) {
      refuse("model.attention.scale",
             "a scale for " + normalizer.name() + ": the polynomial of \"" + scale.name() +
                 "\" is one of softmax's entropy",
             "\"" + scale.name() + "\"", "choose another, or none");
    }
    pattern();
  }

  /// `path`: the key of the choice.
  template <class Info>
  void accept(const Choice<Info>& choice, const std::string& path, const ModelShape& shape) const {
    try {
      choice.parameters(shape);
    } catch (const Error& e) {
      const auto word = [&path](const std::string& text) { return with_keys(text, path); };
      throw e.reworded(word).at(origin_.at(word(e.where())));
    }
  }

  std::string prior_path(size_t i) const {
    return kPrior + c_.model.attention.prior.place(static_cast<int64_t>(i));
  }

  /// Of the prior itself, where heads are mixed beside it.
  std::string base_path(size_t i) const {
    const bool mixed = static_cast<bool>(c_.model.attention.prior.mix_of(static_cast<int64_t>(i)));
    return prior_path(i) + (mixed ? ".base" : "");
  }

  /// How the priors of a list relate to the layers and to each other.
  void pattern() const {
    const int64_t layers = c_.model.layers, n = static_cast<int64_t>(priors().size());
    if (layers % n != 0) {
      refuse(kPrior, "a list whose length is a divisor of model.layers = " + text(layers), text(n),
             "give " + divisors_near(layers, n) + " priors, or change model.layers");
    }
    same_randomization();
    std::map<std::string, size_t> owners;  // of what layers share, by name
    for (size_t i = 0; i < priors().size(); ++i) {
      for (const MechanismParameter& p : priors()[i].parameters(shape())) {
        if (!p.shared) continue;
        const size_t owner = owners.emplace(p.name, i).first->second;
        if (priors()[i] == priors()[owner]) continue;
        refuse(base_path(i),
               "no second prior whose layers share " + p.name + " as those of " + base_path(owner) +
                   " do",
               priors()[i].name(),
               "set share to false in one of them, or give both the same options");
      }
    }
  }

  Randomization randomization(const PriorChoice& prior) const {
    return prior.info().randomization(prior.options, c_.data.sequence_length);
  }

  /// A batch has draws of one kind for all layers that are random.
  void same_randomization() const {
    std::optional<size_t> first;
    for (size_t i = 0; i < priors().size(); ++i) {
      const Randomization own = randomization(priors()[i]);
      if (!own) continue;
      if (!first) first = i;
      const Randomization other = randomization(priors()[*first]);
      if (own.range != other.range) {
        refuse(base_path(i) + ".randomized_length",
               text(other.range) + ", the positions that another layer draws from", text(own.range),
               "give all randomized priors the same");
      }
      if (own == other) continue;
      refuse(base_path(i),
             "random positions, or distances, that are drawn and evaluated as those of " +
                 base_path(*first),
             priors()[i].name() + " and " + priors()[*first].name(),
             "give both the same randomized_draw and eval_positions, and no alibi or "
             "transformer_xl beside a rope");
    }
  }

  /// What shards do not say must be given; the tasks of a run must fit its model.
  void sizes() const {
    const auto open = [this](const char* key) {
      refuse(key, "an integer from 1 on with shards or a file in data.train, which do not say it",
             "0", std::string("change it, or give --set ") + key + "=...");
    };
    if (c_.model.vocab == 0) open("model.vocab");
    if (c_.data.sequence_length == 0) open("data.sequence_length");
    for (const DataSource& s : c_.data.train.list) {
      if (s.task) {
        task(*s.task, "data.train");
      } else {
        next_tokens(abbreviate(s.path), "data.train");
      }
    }
    if (c_.data.val_task) {
      task(*c_.data.val_task, "data.val");
    } else if (c_.data.validates()) {
      next_tokens("shards", "data.val");
    }
    if (c_.model.classes != 0) classes();
  }

  /// Bidirectional attention would see them. What a configuration of an evaluation was trained on
  /// is not its own.
  void next_tokens(const std::string& found, const std::string& key) const {
    if (reads_items() && use_ == ConfigUse::training) {
      refuse(key, "the task max_retrieval with model.kind max_retrieval", found,
             "name that task, or remove model.kind");
    }
    if (causal() || use_ == ConfigUse::evaluation) return;
    refuse(key,
           "tasks whose answers are read at places of their own with model.attention.causal false",
           found + ", whose next tokens a position would see",
           "name such tasks, or remove model.attention.causal");
  }

  /// Of a head whose classes are no ids: nothing may take one for the other.
  void classes() const {
    const std::string other = text(c_.model.classes) + ", and model.vocab is " +
                              text(c_.model.vocab) + ": classes are no ids";
    if (c_.data.train.has_shards()) {
      refuse("model.classes", "0 with shards in data.train, whose targets are ids", other,
             "remove it");
    }
    if (!c_.data.val.empty()) {
      refuse("data.val", "a task, or none, with model.classes", "shards, whose targets are ids",
             "change it, or remove model.classes");
    }
    if (c_.model.tied) {
      refuse("model.tied", "false with model.classes = " + other, "true",
             "set it to false: a head of its own has a row for each class");
    }
    if (!c_.sample.prompts.empty()) {
      refuse("sample.prompts", "none with model.classes = " + other,
             text(std::ssize(c_.sample.prompts)) + " of them", "remove them");
    }
  }

  /// Whether the model can do it at all.
  void task(const TaskInfo& info, const std::string& key) const {
    if (info.of_file) return next_tokens("a file of examples", key);
    if (info.of_items != reads_items()) {
      refuse(key,
             reads_items() ? "the task max_retrieval with model.kind max_retrieval"
                           : "a task of tokens, which a decoder reads",
             "\"" + info.name + "\"" + (reads_items() ? "" : ", whose inputs are items"),
             reads_items() ? "name that task, or remove model.kind"
                           : "set model.kind to max_retrieval, or choose another");
    }
    if (!info.causal && causal()) {
      refuse(key, "a task whose answers follow from what stands before them",
             "\"" + info.name + "\", whose positions read all others",
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
             text(c_.model.vocab), "raise it, or leave it out");
    }
    if (c_.model.outputs() < info.classes) {
      refuse(c_.model.classes == 0 ? "model.vocab" : "model.classes",
             "at least the " + text(info.classes) + " classes of \"" + info.name + "\"",
             text(c_.model.outputs()), "raise it, or leave it out");
    }
  }

  void task(const TaskChoice& choice, const std::string& key) const {
    const TaskInfo& info = *choice.info;
    task(info, key);
    if (info.of_file) return;
    const int64_t most = info.most_inputs(choice.lengths.longest);
    if (c_.data.sequence_length < most) {
      refuse("data.sequence_length",
             "at least " + text(most) + ", the most inputs of \"" + info.name +
                 "\" with sources of up to " + text(choice.lengths.longest),
             text(c_.data.sequence_length), "raise it, or shorten the length of " + key);
    }
  }

  void sources() const {
    const std::vector<DataSource>& all = c_.data.train.list;
    double largest = 0;
    for (const DataSource& s : all) largest = std::max(largest, s.weight);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string entry = "data.train[" + std::to_string(i) + "]";
      if (all[i].weight / largest < kSmallestWeight) {
        refuse(entry + ".weight", "at least 1e-12 of the largest weight",
               nlohmann::json(all[i].weight).dump(), "raise it, or remove the source");
      }
      for (size_t j = 0; j < i; ++j) {
        if (all[i].task || all[j].task || all[j].path != all[i].path) continue;
        refuse(entry + ".path", "another source than data.train[" + std::to_string(j) + "]",
               "\"" + abbreviate(all[i].path) + "\" again",
               "give it once, with the sum of the weights");
      }
    }
  }

  void data() const {
    sizes();
    sources();
    const auto& start = c_.data.document_start;
    if (start && *start >= c_.model.vocab) {
      refuse("data.document_start",
             "a token id below model.vocab = " + text(c_.model.vocab) + ", or null", text(*start),
             "give the id that begins a document, or raise model.vocab");
    }
  }

  void schedule() const {
    const ScheduleConfig& s = c_.schedule;
    const int64_t steps = c_.train.steps;
    const bool wsd = s.name == ScheduleKind::wsd;
    if (wsd && s.warmup_steps >= steps) {
      refuse("schedule.warmup_steps",
             "at most train.steps - 1 = " + text(steps - 1) +
                 " with the wsd schedule, whose decay follows the warm-up",
             text(s.warmup_steps), "shorten the warm-up or raise train.steps");
    }
    if (s.warmup_steps > steps) {
      refuse("schedule.warmup_steps", "at most train.steps = " + text(steps), text(s.warmup_steps),
             "shorten the warm-up or raise train.steps");
    }
    if (!wsd && s.decay_steps != 0) {
      refuse("schedule.decay_steps", "0 unless schedule.name is \"wsd\"", text(s.decay_steps),
             "remove it, or set schedule.name to \"wsd\"");
    }
    if (!wsd && s.decay_shape != DecayShape::linear) {
      refuse("schedule.decay_shape", "\"linear\" unless schedule.name is \"wsd\"", "\"cosine\"",
             "remove it, or set schedule.name to \"wsd\"");
    }
    if (wsd && (s.decay_steps < 1 || s.decay_steps > steps - s.warmup_steps)) {
      refuse("schedule.decay_steps",
             "from 1 to train.steps - schedule.warmup_steps = " + text(steps - s.warmup_steps) +
                 " with the wsd schedule",
             text(s.decay_steps), "say how many of the last steps decay");
    }
    if (c_.train.stop_at > steps) {
      refuse("train.stop_at", "at most train.steps = " + text(steps), text(c_.train.stop_at),
             "lower it, or raise train.steps");
    }
  }

  void batches() const {
    const TrainConfig& t = c_.train;
    const int64_t tokens = t.micro_batch * c_.data.sequence_length;
    const int64_t sequences = t.sequences_per_step;
    if (t.tokens_per_step == 0) {
      refuse("train.tokens_per_step",
             "tokens per optimizer step, or train.sequences_per_step in its place", "0",
             "add one of them");
    }
    if (sequences > 0 && sequences % t.micro_batch != 0) {
      refuse("train.sequences_per_step", "a multiple of train.micro_batch = " + text(t.micro_batch),
             text(sequences), "change one of them");
    }
    if (sequences > 0 && t.tokens_per_step != sequences * c_.data.sequence_length) {
      refuse("train.tokens_per_step",
             text(sequences * c_.data.sequence_length) +
                 ", train.sequences_per_step * data.sequence_length",
             text(t.tokens_per_step), "remove one of the two");
    }
    if (t.tokens_per_step % tokens != 0) {
      const int64_t below = t.tokens_per_step / tokens * tokens;
      refuse("train.tokens_per_step",
             "a multiple of train.micro_batch * data.sequence_length = " + text(tokens),
             text(t.tokens_per_step),
             "use " + (below > 0 ? text(below) + " or " : "") + text(below + tokens) +
                 ", or change train.micro_batch");
    }
    const int64_t micro_batches = t.tokens_per_step / tokens;
    const bool power = t.lanes == 0 || std::has_single_bit(static_cast<uint64_t>(t.lanes));
    if (!power || (t.lanes != 0 && micro_batches % t.lanes != 0)) {
      const int64_t most = micro_batches & -micro_batches;
      refuse("train.lanes",
             "a power of two that divides the " + text(micro_batches) +
                 " micro-batches of a step (train.tokens_per_step / (train.micro_batch * "
                 "data.sequence_length))",
             text(t.lanes),
             "use " + (most > 1 ? "a power of two up to " + text(most) : "1") +
                 ", or 0 for the largest up to 8");
    }
  }

  void checkpoints() const {
    const CheckpointConfig& k = c_.checkpoint;
    if (k.keep_every != 0 && (k.every == 0 || k.keep_every % k.every != 0)) {
      refuse("checkpoint.keep_every", "0 or a multiple of checkpoint.every = " + text(k.every),
             text(k.keep_every),
             k.every == 0 ? "set checkpoint.every too" : "choose such a multiple");
    }
    best_checkpoint();
    for (const std::string& name : k.allow_change) {
      const Key* owner = find_owner(name);
      const bool inside = owner != nullptr && (owner->path == name || holds_members(*owner));
      if (inside || is_group(name)) continue;
      refuse("checkpoint.allow_change", "known keys or groups of keys",
             "\"" + abbreviate(name) + "\"", unknown_key_remedy(name));
    }
  }

  void best_checkpoint() const {
    const std::string& metric = c_.checkpoint.best_metric;
    if (metric.empty() || use_ == ConfigUse::evaluation) return;
    const std::vector<std::string> known = metrics_while_training(c_);
    if (std::find(known.begin(), known.end(), metric) != known.end()) return;
    const std::string near = nearest_name(metric, known);
    refuse("checkpoint.best.metric",
           known.empty() ? "a metric of a run with data.val, or with eval.tasks that say every"
                         : "one of " + join(known),
           "\"" + abbreviate(metric) + "\"",
           near.empty() ? "choose one of them, or set every in the entry of eval.tasks"
                        : "did you mean \"" + near + "\"?");
  }

  static bool holds_members(const Key& key) {
    return key.names_mechanism || key.schema.contains("additionalProperties");
  }

  void evaluation() const {
    const EvalConfig& e = c_.eval;
    if (use_ == ConfigUse::training && e.lengths.empty() && e.length_tokens.value_or(0) != 0) {
      refuse("eval.length_tokens", "0 or null without eval.lengths, which it is about",
             text(*e.length_tokens), "set eval.lengths, or remove it");
    }
    if (use_ == ConfigUse::training && e.last_tokens != 0) {
      const auto shortest = std::min_element(e.lengths.begin(), e.lengths.end());
      if (shortest == e.lengths.end() || *shortest < e.last_tokens) {
        refuse("eval.last_tokens",
               shortest == e.lengths.end()
                   ? "0 without eval.lengths, which it is about"
                   : "at most the shortest of eval.lengths, " + text(*shortest),
               text(e.last_tokens), "set eval.lengths, or lower it");
      }
    }
    const bool wanted =
        e.every != 0 || e.tokens != 0 || !e.lengths.empty() || e.length_tokens.value_or(0) != 0;
    if (!c_.data.validates() && wanted) {
      refuse("data.val", "shards to validate on, which the keys of eval ask for", "none",
             "set data.val, or remove eval.every, eval.tokens, eval.lengths and "
             "eval.length_tokens");
    }
    if (use_ == ConfigUse::training && c_.data.val_task && !e.lengths.empty()) {
      refuse("eval.lengths", "none with a task in data.val: documents of shards have lengths",
             text(std::ssize(e.lengths)) + " of them", "remove it");
    }
    if (e.tokens != 0 && e.tokens < c_.data.sequence_length) {
      refuse("eval.tokens", "0 or at least data.sequence_length = " + text(c_.data.sequence_length),
             text(e.tokens), "raise it: a pass needs one whole sequence");
    }
    if (use_ == ConfigUse::evaluation) return;  // which has lengths of its own
    for (size_t i = 0; i < priors().size() && !e.lengths.empty(); ++i) {
      if (!randomization(priors()[i]).in_evaluation) continue;
      refuse(base_path(i) + ".eval_positions",
             "\"counted\" with eval.lengths: perplexity is of positions that count", "\"drawn\"",
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
    std::map<std::string, size_t> owners;  // of results, by name
    for (size_t i = 0; i < e.tasks.size(); ++i) {
      const TaskRequest& r = e.tasks[i].request;
      const std::string entry = "eval.tasks[" + std::to_string(i) + "]";
      task(*r.task.info, entry);
      if (r.name == kValidationResult || contains(kPerplexityResults, r.name)) {
        refuse(entry + ".name",
               "another name than " + std::string(kValidationResult) +
                   " and those of perplexity at eval.lengths, " + join(kPerplexityResults),
               "\"" + r.name + "\"", "choose another");
      }
      const auto in_names = [](char ch) {
        return static_cast<unsigned char>(ch) > ' ' && ch != '/' && ch != '@' && ch != '\x7f';
      };
      if (!std::all_of(r.name.begin(), r.name.end(), in_names)) {
        refuse(entry + ".name", "a name without spaces, / and @, which metrics have",
               "\"" + abbreviate(r.name) + "\"", "choose another");
      }
      for (const int64_t length : r.lengths) {
        const auto [owner, is_new] = owners.emplace(result_at(r.name, length), i);
        if (!is_new) {
          refuse(entry + ".name",
                 "a name that eval.tasks[" + std::to_string(owner->second) +
                     "] has not, at a length of both",
                 "\"" + abbreviate(r.name) + "\"", "give one of them another name");
        }
      }
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

  /// A scale may know rows up to a number of visible keys; a window bounds what a row sees.
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
             "lengths whose rows see at most " + text(longest) + " keys, the entries of the \"" +
                 scale.name() + "\" scale",
             text(length), "remove the longer ones, or raise model.attention.scale.lengths");
    }
  }

  void samples() const {
    const SampleConfig& s = c_.sample;
    if (!causal() && !s.prompts.empty()) {
      refuse("sample.prompts", "none with model.attention.causal false, which writes no text",
             text(std::ssize(s.prompts)) + " of them", "remove them");
    }
    if (!s.prompts.empty() || (s.every == 0 && s.tokenizer.empty())) return;
    refuse("sample.prompts", "a prompt, which sample.every or sample.tokenizer ask for", "none",
           "set sample.prompts, [\"\"] for a document from its start, or remove the others");
  }

  /// Which parameters of mechanisms a key can name. For the optimizer a group is there with
  /// its parameters alone, and what is added to the embedding is the embedding's.
  enum class Named { all, by_optimizer, trained };

  /// What names parameters of prior, scale and normalizer: theirs, and those of the groups. A mix
  /// is one within the prior's.
  std::vector<std::string> mechanism_names(Named which) const {
    MechanismParameters of_prior, of_mix, of_scale = c_.model.attention.scale.parameters(shape());
    MechanismParameters of_normalizer = c_.model.attention.normalizer.parameters(shape());
    for (size_t i = 0; i < priors().size(); ++i) {
      if (which != Named::all && priors()[i].info().is<EmbeddingFamily>()) continue;
      for (const MechanismParameter& p : priors()[i].parameters(shape())) of_prior.push_back(p);
      for (const MechanismParameter& p :
           c_.model.attention.prior.mix_parameters(static_cast<int64_t>(i), shape())) {
        of_mix.push_back(p);
      }
    }
    of_prior.insert(of_prior.end(), of_mix.begin(), of_mix.end());
    std::vector<std::string> known;
    const auto add = [&](const std::string& group, MechanismParameters& list) {
      if (which == Named::trained) {
        std::erase_if(list, [](const MechanismParameter& p) { return !p.trained; });
      }
      if (which == Named::all || !list.empty()) known.push_back(group);
    };
    add("prior", of_prior);
    add("mix", of_mix);
    add("scale", of_scale);
    add("normalizer", of_normalizer);
    for (const auto* list : {&of_prior, &of_scale, &of_normalizer}) {
      for (const MechanismParameter& p : *list) {
        if (!contains(known, p.name)) known.push_back(p.name);
      }
    }
    return known;
  }

  static std::string one_of_names(const std::vector<std::string>& known) {
    return known.empty()
               ? "no names: no layer trains parameters of a prior, a scale or a normalizer"
               : "one of " + join(known);
  }

  void require_known(const std::string& key, const std::string& name,
                     const std::vector<std::string>& known) const {
    if (contains(known, name)) return;
    const std::string near = nearest_name(name, known);
    refuse(key, one_of_names(known), "an unknown group or parameter, " + abbreviate(name),
           near.empty() ? "remove it" : "did you mean \"" + near + "\"?");
  }

  /// An evaluation has no rates, and perhaps another prior than the training's multipliers are of.
  void multipliers() const {
    if (use_ == ConfigUse::evaluation) return;
    const std::vector<std::string> known = mechanism_names(Named::by_optimizer);
    const std::vector<std::string> trained = multiplier_names();
    for (const auto& [name, unused] : c_.optimizer.lr_multipliers) {
      if (contains(trained, name)) continue;
      const std::string key = "optimizer.lr_multipliers." + abbreviate(name);
      if (contains(known, name)) {
        refuse(key,
               "a group or parameter that is trained" +
                   (trained.empty() ? "" : ": one of " + join(trained)),
               name + ", which stays at its initial value",
               "remove it, or train it: an option of what it belongs to says what is trained");
      }
      if (name == "prior" || name == "mix" || name == "scale" || name == "normalizer") {
        refuse(key, one_of_names(trained),
               name + ", and this model's " + name + " has no trained parameters of its own",
               "remove it");
      }
      require_known(key, name, trained);
    }
  }

  void init_from() const {
    const InitFromConfig& from = c_.init_from;
    if (from.folder.empty() && !from.absent.empty()) {
      refuse("init_from.new", "no names without init_from.folder", join(from.absent),
             "set init_from.folder, or remove them: all parameters are new without it");
    }
    if (use_ == ConfigUse::evaluation) return;  // perhaps with another prior than they are of
    for (const std::string& name : from.absent) {
      require_known("init_from.new", name, mechanism_names(Named::all));
    }
  }

  const RunConfig& c_;
  const Origin& origin_;
  ConfigUse use_;
};

}  // namespace

void validate(const RunConfig& config, const Origin& origin, ConfigUse use) {
  RunConfig scratch = config;
  for (const Key& key : all_keys()) key.set(scratch, nlohmann::json(key.get(config)), origin);
  Relations(config, origin, use).check();
}

void validate(const RunConfig& config) { validate(config, Origin{}); }

std::vector<std::string> multiplier_names(const RunConfig& config) {
  const Origin nowhere;
  return Relations(config, nowhere, ConfigUse::training).multiplier_names();
}

}  // namespace bamtrain

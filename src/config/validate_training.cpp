#include "config/config_checks.h"
#include "config/keys.h"
#include "config/renamed_keys.h"
#include "core/abbreviate.h"
#include "core/closest_match.h"
#include "core/join.h"
#include "core/metric.h"
#include "core/unexpanded_path.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

class TrainingChecks : ConfigChecks {
 public:
  using ConfigChecks::ConfigChecks;

  void check() const {
    // Checkpoints to evaluate may come from a run that had such a folder.
    if (use_ == ConfigUse::training) {
      require_expanded_path(c_.out_dir, ExitCode::config, origin_.at("out_dir"));
    }
    schedule();
    batches();
    checkpoints();
  }

 private:
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
    if (t.lanes == 0 || micro_batches % t.lanes == 0) return;
    refuse("train.lanes",
           "a divisor of the " + text(micro_batches) +
               " micro-batches of a step (train.tokens_per_step / (train.micro_batch * "
               "data.sequence_length))",
           text(t.lanes),
           "use " + divisors_near(micro_batches, t.lanes, kMaxGroups) +
               ", or 0 for a power of two up to 8");
  }

  void checkpoints() const {
    const CheckpointConfig& k = c_.checkpoint;
    if (k.keep_every != 0 && (k.every == 0 || k.keep_every % k.every != 0)) {
      refuse("checkpoint.keep_every", "0 or a multiple of checkpoint.every = " + text(k.every),
             text(k.keep_every), k.every == 0 ? "set checkpoint.every too" : "");
    }
    best_checkpoint();
    for (const std::string& name : k.allow_change) {
      const Key* owner = find_owner(name);
      const bool inside = owner != nullptr && (owner->path == name || holds_members(*owner));
      if (inside || is_group(name) || is_earlier_name(name)) continue;
      refuse("checkpoint.allow_change", "known keys or groups of keys",
             "\"" + abbreviate(name) + "\"", unknown_key_remedy(name));
    }
  }

  bool is_earlier_name(const std::string& name) const {
    const RenamedKey* const renamed = find_renamed_key(name);
    return renamed != nullptr && c_.config_version <= renamed->last_version;
  }

  void best_checkpoint() const {
    const std::string& metric = c_.checkpoint.best_metric;
    if (metric.empty() || use_ == ConfigUse::evaluation) return;
    const std::vector<std::string> known = metrics_while_training(c_);
    if (contains(known, metric)) {
      if (c_.checkpoint.best_is_highest ||
          !higher_is_better(metric.substr(metric.rfind('/') + 1))) {
        return;
      }
      refuse("checkpoint.best.mode", "max with " + metric + ", where higher is better", "min",
             "set it to max");
    }
    refuse(
        "checkpoint.best.metric",
        known.empty() ? "a metric measured while training: data.val, or eval.tasks with every"
                      : "one of " + join(known),
        "\"" + abbreviate(metric) + "\"",
        did_you_mean(metric, known, "choose one of them, or set every in the entry of eval.tasks"));
  }

  static bool holds_members(const Key& key) {
    return key.names_mechanism || key.schema.contains("additionalProperties");
  }
};

}  // namespace

void check_training(const RunConfig& config, const Origin& origin, ConfigUse use) {
  TrainingChecks(config, origin, use).check();
}

}  // namespace bamtrain

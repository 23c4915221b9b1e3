#pragma once
// Checks that relate several keys of a configuration, implemented in one validate_*.cpp per part.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "config/validate.h"
#include "tasks/task.h"

namespace bamtrain {

/// What a check sees: a configuration, where it was written and what it is for.
class ConfigChecks {
 public:
  ConfigChecks(const RunConfig& config, const Origin& origin, ConfigUse use)
      : c_(config), origin_(origin), use_(use) {}

 protected:
  static constexpr char kPrior[] = "model.attention.prior";

  static std::string text(int64_t n) { return std::to_string(n); }
  static bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// The divisors of n closest to m, for a remedy: "8 or 12"; the upper one if it is at most
  /// `most`.
  static std::string divisors_near(int64_t n, int64_t m, int64_t most = INT64_MAX) {
    int64_t below = std::min(m, n), above = m;
    while (below > 1 && n % below != 0) --below;
    while (above <= std::min(n, most) && n % above != 0) ++above;
    return text(below) + (above <= std::min(n, most) ? " or " + text(above) : "");
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& expected,
                           const std::string& found, const std::string& remedy) const;

  bool reads_items() const { return c_.model.kind == ModelKind::max_retrieval; }
  bool causal() const { return c_.model.attention.causal; }
  ModelShape shape() const { return c_.model.shape(c_.data.sequence_length); }
  const std::vector<PriorChoice>& priors() const { return c_.model.attention.prior.pattern; }
  Randomization randomization(const PriorChoice& prior) const;

  /// The key of a prior of the pattern.
  std::string prior_path(size_t i) const;
  /// The key of the prior itself; differs from prior_path if the layer has a mix.
  std::string base_path(size_t i) const;

  /// Refuses the task at `key` if the model cannot perform it at all.
  void task(const TaskInfo& info, const std::string& key) const;
  /// Refuses next-token targets if the model would see them in its input, or cannot use them.
  void next_tokens(const std::string& found, const std::string& key) const;

  const RunConfig& c_;
  const Origin& origin_;
  ConfigUse use_;
};

/// Heads, prior, scale and normalizer.
void check_model(const RunConfig& config, const Origin& origin, ConfigUse use);
/// Sources, values that shards do not specify, and whether the model can perform the tasks.
void check_data(const RunConfig& config, const Origin& origin, ConfigUse use);
/// Schedule, batches, checkpoints.
void check_training(const RunConfig& config, const Origin& origin, ConfigUse use);
/// Validation, lengths, tasks and samples.
void check_evaluation(const RunConfig& config, const Origin& origin, ConfigUse use);
/// Parameter names: learning rates, and parameters missing from init_from.
void check_parameter_names(const RunConfig& config, const Origin& origin, ConfigUse use);

}  // namespace bamtrain

#pragma once
// Properties of a metric by its name ("exact_match").

#include <string>

namespace bamtrain {

/// Whether a greater value is better: true except for losses, perplexities and bits.
inline bool higher_is_better(const std::string& number) {
  return number != "loss" && number != "perplexity" && number != "bits_per_byte";
}

/// The metric's name without its result's: "accuracy" for "copy@64/accuracy".
inline std::string metric_base_name(const std::string& metric) {
  return metric.substr(metric.rfind('/') + 1);
}

/// Whether people read it as a percentage.
inline bool is_fraction(const std::string& number) {
  for (const char* const share :
       {"accuracy", "exact_match", "bleu", "recall", "acc", "acc_norm", "acc_token", "greedy"}) {
    if (number == share) return true;
  }
  return false;
}

}  // namespace bamtrain

#pragma once
// What is known of a number that runs are measured by from its name, as "exact_match".

#include <string>

namespace bamtrain {

/// Whether a greater value is better: of all but losses, perplexities and bits.
inline bool is_better_high(const std::string& number) {
  return number != "loss" && number != "perplexity" && number != "bits_per_byte";
}

/// That of a metric: "accuracy" of "copy@64/accuracy".
inline std::string number_of_metric(const std::string& metric) {
  return metric.substr(metric.rfind('/') + 1);
}

/// Whether people read it in percent.
inline bool is_share(const std::string& number) {
  for (const char* const share :
       {"accuracy", "exact_match", "bleu", "recall", "acc", "acc_norm", "acc_token", "greedy"}) {
    if (number == share) return true;
  }
  return false;
}

}  // namespace bamtrain

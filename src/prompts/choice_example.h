#pragma once
// A multiple-choice question as texts to be scored by likelihood.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

/// Choice i is scored by the log-probability of continuation(i) given context(i).
struct ChoiceExample {
  std::vector<std::string> contexts;       // one for all choices, or one per choice
  std::vector<std::string> continuations;  // one for all choices, or one per choice
  std::vector<int64_t> characters;         // of each choice alone; acc_norm divides by it
  size_t gold = 0;                         // the correct choice
  std::string group;  // group with its own score, such as a subject; empty: no group
  std::string lead;   // text before the few-shot examples
  int64_t line = 0;   // line in its file

  size_t choices() const { return std::max(contexts.size(), continuations.size()); }
  const std::string& context(size_t i) const { return contexts[contexts.size() == 1 ? 0 : i]; }
  const std::string& continuation(size_t i) const {
    return continuations[continuations.size() == 1 ? 0 : i];
  }
};

/// A question whose choices each continue `context` after a space.
ChoiceExample asked(std::string context, const std::vector<std::string>& choices, size_t gold);

}  // namespace bamtrain

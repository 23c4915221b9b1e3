#pragma once
// A question with choices, as texts that a model is asked for the likelihood of.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

/// Choice i is scored by the log-probability of continuation(i) behind context(i).
struct ChoiceExample {
  std::vector<std::string> contexts;       // one that all choices share, or one for each
  std::vector<std::string> continuations;  // likewise
  std::vector<int64_t> characters;         // of each choice by itself: what acc_norm divides by
  size_t gold = 0;                         // the right choice
  std::string group;  // what scores are told by beside all of them: a subject; empty: nothing
  std::string lead;   // stands before the shots
  int64_t line = 0;   // of its file

  size_t choices() const { return std::max(contexts.size(), continuations.size()); }
  const std::string& context(size_t i) const { return contexts[contexts.size() == 1 ? 0 : i]; }
  const std::string& continuation(size_t i) const {
    return continuations[continuations.size() == 1 ? 0 : i];
  }
};

/// A context that each of the choices continues behind a space.
ChoiceExample asked(std::string context, const std::vector<std::string>& choices, size_t gold);

}  // namespace bamtrain

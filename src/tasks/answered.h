#pragma once
// Sequences of the Chomsky benchmark (Deletang et al., "Neural networks and the Chomsky hierarchy",
// ICLR 2023; formats as in its code). A sequence is the source's tokens, then one placeholder per
// answer token, where that token is the target. Every position reads all others.

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

/// Terminates an answer that may be shorter than its positions.
inline constexpr int32_t kTerminator = 2;

/// A task with `symbols` kinds of input tokens, not counting the placeholder, and `classes` answer
/// classes. Ids are displayed as numbers.
inline TaskInfo answered_task(int32_t symbols, int32_t classes) {
  TaskInfo t;
  t.lengths = {1, 40};
  t.length_of_step = true;
  t.causal = false;
  t.inputs = symbols + 1;
  t.padding = symbols;
  t.classes = classes;
  t.symbol = t.label = [](int32_t id) { return std::to_string(id); };
  return t;
}

/// REQUIRES: the answer has at least one token.
inline void write_answered(const TaskContext& context, const Symbols& source, const Symbols& answer,
                           Example* out) {
  for (const int32_t id : source) out->add(id);
  for (const int32_t target : answer) out->add(context.info.padding, target);
}

/// An answer of `places` ids: the tokens, the terminator, then zeros.
inline Symbols terminated(Symbols tokens, int64_t places) {
  tokens.push_back(kTerminator);
  tokens.resize(static_cast<size_t>(places), 0);
  return tokens;
}

}  // namespace bamtrain

#pragma once
// How an answer compares with what a sequence asks for.

#include <cstdint>
#include <span>

#include "core/ignore_index.h"

namespace bamtrain {

struct Score {
  int64_t compared = 0, right = 0;  // places
  bool exact() const { return compared == right; }
};

/// Answers at all places of a sequence against its targets. Where the task has a terminator, places
/// behind the first one that asks for it are not compared. Exact: greedy decoding, which sees its
/// own answers in the place of targets, would have given the same, and nothing else would.
/// REQUIRES: sizes are equal.
inline Score score(std::span<const int32_t> targets, std::span<const int32_t> answers,
                   int32_t terminator = kIgnoreIndex) {
  Score s;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    ++s.compared;
    s.right += answers[i] == targets[i];
    if (targets[i] == terminator) break;
  }
  return s;
}

}  // namespace bamtrain

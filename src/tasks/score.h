#pragma once
// Compares answers with the targets of a sequence.

#include <cstdint>
#include <span>

#include "core/ignore_index.h"

namespace bamtrain {

struct Score {
  int64_t compared = 0, right = 0;  // positions
  bool exact() const { return compared == right; }
};

/// Scores the answers at all positions of a sequence against its targets. If the task has a
/// terminator, positions after the first target that is the terminator are not compared. The
/// answers are exact if and only if greedy decoding, which sees its own answers instead of targets,
/// would give the targets. REQUIRES: sizes are equal.
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

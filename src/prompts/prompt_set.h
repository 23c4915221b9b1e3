#pragma once
// Prompts that fill a length: RULER's way to a haystack's size.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "prompts/text_prompt.h"
#include "tasks/draws.h"

namespace bamtrain {

/// The haystack's sizes that a task has, in units of its own: lines, words, ...
struct HaystackSizes {
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// A prompt with a haystack of that size. The same draws give the same: no other state.
using PromptMaker = std::function<TextPrompt(int64_t size, Draws* draws)>;

/// The prompts of a task at one length: each a pure function of (seed, task, length, index).
class PromptSet {
 public:
  /// The largest size is sought, once, at which one of a few prompts of its own has at most
  /// `length` tokens with those that are to be generated. Error (ExitCode::config) at "{length}"
  /// where the smallest has more, or the largest fewer: no text would fill that length.
  PromptSet(const std::string& task, HaystackSizes sizes, int64_t length, uint64_t seed,
            TokenCount count, PromptMaker make);

  /// Prompt number `index`, of that size, or of a smaller one where it comes out longer than the
  /// length. Thread-safe where the count is. REQUIRES: 0 <= index < Draws::kMaxIndex.
  /// Error as above where the smallest is too long.
  TextPrompt prompt(int64_t index) const;

  /// Error as above where the smallest of any of the prompts [first, first + count) is too long.
  /// Where one takes less than half of the length none is, and no more are made.
  void require_room(int64_t first, int64_t count) const;

  int64_t size() const { return size_; }

 private:
  TextPrompt made(const Rng& stream, int64_t index, int64_t size) const;
  /// With those that are to be generated.
  int64_t tokens(const TextPrompt& prompt) const;
  [[noreturn]] void too_short(int64_t tokens) const;

  std::string task_;
  HaystackSizes sizes_;
  int64_t length_;
  Rng stream_;
  TokenCount count_;
  PromptMaker make_;
  int64_t size_ = 0;
};

}  // namespace bamtrain

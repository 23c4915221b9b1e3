#pragma once
// Prompts that fill a length: finds a haystack's size as RULER does.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "prompts/text_prompt.h"
#include "tasks/draws.h"

namespace bamtrain {

/// The haystack sizes of a task, in its own units: lines, words, ...
struct HaystackSizes {
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// Makes a prompt with a haystack of that size. Depends only on its arguments.
using PromptMaker = std::function<TextPrompt(int64_t size, Draws* draws)>;

/// The prompts of a task at one length. Each is a pure function of (seed, task, length, index).
class PromptSet {
 public:
  /// Searches once for the largest size at which one of a few measured prompts has at most `length`
  /// tokens, including those to be generated. Throws Error (ExitCode::config) at "{length}" if the
  /// smallest prompt has more, or if even the largest has fewer, so that no text could fill that
  /// length.
  PromptSet(const std::string& task, HaystackSizes sizes, int64_t length, uint64_t seed,
            TokenCount count, PromptMaker make);

  /// Prompt number `index`, of that size, or smaller if it would exceed the length. Thread-safe if
  /// the count is. REQUIRES: 0 <= index < Draws::kMaxIndex. Throws Error as above if the smallest
  /// is too long.
  TextPrompt prompt(int64_t index) const;

  /// Throws Error as above if the smallest size of any of the prompts [first, first + count) is too
  /// long. If one needs at most half of the length, assumes that all fit and stops.
  void require_room(int64_t first, int64_t count) const;

  int64_t size() const { return size_; }

 private:
  TextPrompt made(const Rng& stream, int64_t index, int64_t size) const;
  /// Tokens of the prompt, including those to be generated.
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

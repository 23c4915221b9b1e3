#pragma once
// Haystacks, and how needles are hidden in them.

#include <string>
#include <vector>

#include "prompts/text_prompt.h"

namespace bamtrain {

/// A text and the places of its needles.
struct Haystack {
  std::string text;
  std::vector<TextPrompt::Place> needles;  // in text order
};

struct Needle {
  int64_t before = 0;  // index of the unit that follows; the number of units: at the end
  std::string text;
  bool asked = true;
};

/// Joins units and needles with `separator`. Needles before the same unit keep their order.
/// REQUIRES: needles are sorted by `before`, which is at most the number of units.
Haystack hide(const std::vector<std::string>& units, const std::vector<Needle>& needles,
              char separator);

/// A text split at white space into words, as RULER treats its essays.
class HaystackText {
 public:
  /// Throws Error (ExitCode::io) if the file cannot be read, and Error (ExitCode::data) if it has
  /// no words or is not UTF-8.
  static HaystackText read(const std::string& path);
  /// REQUIRES: `text` has words.
  explicit HaystackText(const std::string& text);

  int64_t size() const { return std::ssize(words_); }
  /// The first `count` words joined by single spaces, repeating the text if it has fewer. REQUIRES:
  /// count >= 1.
  std::string first(int64_t count) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace bamtrain

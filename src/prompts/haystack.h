#pragma once
// What needles are hidden in, and how they are put there.

#include <string>
#include <vector>

#include "prompts/text_prompt.h"

namespace bamtrain {

/// `text`, and where what was put into it stands.
struct Haystack {
  std::string text;
  std::vector<TextPrompt::Place> needles;  // in the order of the text
};

struct Needle {
  int64_t before = 0;  // the unit that follows it; as many as there are: none does
  std::string text;
  bool asked = true;
};

/// Units and needles, joined by `separator`. Needles before the same unit keep their order.
/// REQUIRES: needles are sorted by `before`, which is at most the number of units.
Haystack hide(const std::vector<std::string>& units, const std::vector<Needle>& needles,
              char separator);

/// A text as RULER takes its essays: words, whatever white space was between them.
class HaystackText {
 public:
  /// Error (ExitCode::io) where the file cannot be read, (ExitCode::data) for one without words or
  /// that is no UTF-8.
  static HaystackText read(const std::string& path);
  /// REQUIRES: `text` has words.
  explicit HaystackText(const std::string& text);

  int64_t size() const { return std::ssize(words_); }
  /// The first `count` words with single spaces between, over and over where there are fewer.
  /// REQUIRES: count >= 1.
  std::string first(int64_t count) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace bamtrain

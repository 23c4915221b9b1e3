#pragma once
// A prompt as text, with its expected answers.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bamtrain {

struct TextPrompt {
  /// A needle's place in the text; needles are in text order.
  struct Place {
    size_t at = 0, size = 0;  // in bytes of the text
    bool asked = true;        // whether a reference comes from it
  };

  std::string text;
  std::vector<std::string> outputs;  // references: all requested answers
  int64_t tokens_to_generate = 0;
  std::vector<Place> needles = {};
};

/// Counts the tokens of a text as the answering model reads it, including a BOS if any.
using TokenCount = std::function<int64_t(const std::string& text)>;

}  // namespace bamtrain

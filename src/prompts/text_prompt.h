#pragma once
// A prompt as text, with what its answer should hold.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bamtrain {

struct TextPrompt {
  /// What was put into the text, in the order in which it stands there.
  struct Place {
    size_t at = 0, size = 0;  // bytes of the text
    bool asked = true;        // whether a reference comes from it
  };

  std::string text;
  std::vector<std::string> outputs;  // references, as many as are asked for
  int64_t tokens_to_generate = 0;
  std::vector<Place> needles = {};
};

/// Tokens of a text as the model that answers reads it, a BOS included where there is one.
using TokenCount = std::function<int64_t(const std::string& text)>;

}  // namespace bamtrain

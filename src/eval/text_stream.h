#pragma once
// Turns a stream of bytes into text that may be shown: whole characters, up to a stop string.

#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// Invalid UTF-8 becomes U+FFFD (replace_invalid_utf8). The text ends before the first stop string
/// to be completed; of several completed together, the longest counts. The total output does not
/// depend on how the bytes are split.
class TextStream {
 public:
  /// REQUIRES: stops are valid UTF-8 and not empty.
  explicit TextStream(std::vector<std::string> stops);

  /// Returns the text that may be shown now. Holds back the bytes of an incomplete character and a
  /// possible prefix of a stop string.
  std::string add(std::string_view bytes);
  /// Ends the text; returns what was held back.
  std::string finish();
  /// Whether a stop string has ended the text; nothing more is shown then.
  bool stopped() const { return stopped_; }

 private:
  void take(std::string_view character);
  size_t possible_stop() const;

  std::vector<std::string> stops_;
  std::string bytes_;  // bytes of an incomplete character
  std::string text_;   // not shown yet
  bool stopped_ = false;
};

}  // namespace bamtrain

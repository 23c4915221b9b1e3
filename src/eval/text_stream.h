#pragma once
// Text that arrives in pieces of bytes and may be shown: whole characters, up to a stop string.

#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// Ill-formed UTF-8 becomes U+FFFD (replace_invalid_utf8). The text ends before the stop string
/// that is complete first; of several complete at once the longest counts. However the bytes are
/// cut into pieces, what is shown in all is the same.
class TextStream {
 public:
  /// REQUIRES: each in valid UTF-8, none empty.
  explicit TextStream(std::vector<std::string> stops);

  /// What may be shown now. Held back: the bytes of an unfinished character and what may be the
  /// beginning of a stop string.
  std::string add(std::string_view bytes);
  /// What was held back, where the text ends here.
  std::string finish();
  /// Whether a stop string has ended the text: nothing is shown any more.
  bool stopped() const { return stopped_; }

 private:
  void take(std::string_view character);
  size_t possible_stop() const;

  std::vector<std::string> stops_;
  std::string bytes_;  // of an unfinished character
  std::string text_;   // not shown yet
  bool stopped_ = false;
};

}  // namespace bamtrain

#include "eval/text_stream.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace bamtrain {

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_) {
    require(!s.empty() && first_invalid_utf8(s) == std::string_view::npos, "stop strings of text");
  }
  // Longest first.
  std::sort(stops_.begin(), stops_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string TextStream::add(std::string_view bytes) {
  bytes_.append(bytes);
  size_t at = 0;
  while (at < bytes_.size() && !stopped_) {
    const Utf8Character c = utf8_character_at(bytes_, at);
    const bool may_begin_one = c.code >= 0xC2 && c.code <= 0xF4;
    if (!c.valid && may_begin_one && at + c.bytes == bytes_.size()) break;  // may be incomplete
    take(c.valid ? std::string_view(bytes_).substr(at, c.bytes) : "\xEF\xBF\xBD");
    at += c.bytes;
  }
  bytes_.erase(0, at);
  const size_t shown = text_.size() - (stopped_ ? 0 : possible_stop());
  const std::string out = text_.substr(0, shown);
  text_.erase(0, shown);
  return out;
}

std::string TextStream::finish() {
  if (!bytes_.empty() && !stopped_) take("\xEF\xBF\xBD");
  bytes_.clear();
  return std::exchange(text_, "");
}

/// Appends a whole character, and removes a stop string that it completes.
void TextStream::take(std::string_view character) {
  text_.append(character);
  for (const std::string& s : stops_) {
    if (!text_.ends_with(s)) continue;
    text_.erase(text_.size() - s.size());
    stopped_ = true;
    return;
  }
}

/// Length in bytes of the longest suffix of the text that is a prefix of a stop string.
size_t TextStream::possible_stop() const {
  size_t longest = 0;
  for (const std::string& s : stops_) {
    for (size_t n = std::min(s.size() - 1, text_.size()); n > longest; --n) {
      if (text_.compare(text_.size() - n, n, s, 0, n) == 0) longest = n;
    }
  }
  return longest;
}

}  // namespace bamtrain

#include "data_tools/json_string.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data_tools/utf16.h"

namespace bamtrain {
namespace {

// As parse_json has them (core/json.h).
constexpr int kDeepestLevel = 100;
constexpr int64_t kMostMembers = int64_t{1} << 22;

struct Range {
  size_t begin = 0, end = 0;  // between the quotes
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads JSON (RFC 8259) and builds nothing. Each function goes behind what it is named after, and
/// is false where that is not there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// An object, and nothing behind it, of which `*string` is the member `field`.
  bool object_with(std::string_view field, Range* string) {
    bool found = false;
    const auto member = [&](std::string_view key) {
      if (key != field) return value(1);
      found = true;
      return this->string(string);
    };
    return members(member) && found && at_ == text_.size();
  }

 private:
  bool is_next(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!is_next(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  /// What may stand around any value.
  void space() {
    while (is_next(' ') || is_next('\t') || is_next('\r') || is_next('\n')) ++at_;
  }

  /// An object whose keys differ and have no escapes; member(key) goes behind the value of each.
  template <class F>
  bool members(const F& member) {
    space();
    if (!take('{')) return false;
    space();
    std::vector<std::string_view> keys;
    if (!take('}')) {
      do {
        Range key;
        space();
        if (!string(&key)) return false;
        space();
        if (!take(':')) return false;
        space();
        keys.push_back(text_.substr(key.begin, key.end - key.begin));
        if (keys.back().find('\\') != std::string_view::npos || !member(keys.back())) return false;
        space();
      } while (take(','));
      if (!take('}')) return false;
    }
    space();
    std::sort(keys.begin(), keys.end());
    return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
  }

  bool list(int level) {
    if (!take('[')) return false;
    space();
    if (take(']')) return true;
    do {
      space();
      if (!value(level)) return false;
      space();
    } while (take(','));
    return take(']');
  }

  /// `level`: of what it lies in.
  bool value(int level) {
    Range unused;
    if (++values_ > kMostMembers) return false;
    if (is_next('"')) return string(&unused);
    if (is_next('{') || is_next('[')) {
      if (level >= kDeepestLevel) return false;
      if (is_next('[')) return list(level + 1);
      return members([&](std::string_view) { return value(level + 1); });
    }
    return take("true") || take("false") || take("null") || number();
  }

  bool digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }

  bool string(Range* range) {
    if (!take('"')) return false;
    range->begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    range->end = at_;
    return take('"');
  }

  /// What is behind a backslash.
  bool escape() {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    const int unit = code_unit_at(text_, at_);
    if (unit < 0 || is_low_surrogate(unit)) return false;
    at_ += 4;
    if (!is_high_surrogate(unit)) return true;
    if (!take("\\u") || !is_low_surrogate(code_unit_at(text_, at_))) return false;
    at_ += 4;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t values_ = 0;
};

/// Puts the UTF-8 of a code point at `to`; how many bytes.
size_t put_utf8(char* to, int code) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    to[0] = static_cast<char>(code);
    return 1;
  }
  if (code < 0x800) {
    to[0] = static_cast<char>(0xC0 | code >> 6);
    to[1] = tail(0);
    return 2;
  }
  if (code < 0x10000) {
    to[0] = static_cast<char>(0xE0 | code >> 12);
    to[1] = tail(6);
    to[2] = tail(0);
    return 3;
  }
  to[0] = static_cast<char>(0xF0 | code >> 18);
  to[1] = tail(12);
  to[2] = tail(6);
  to[3] = tail(0);
  return 4;
}

/// Replaces the escapes of a string that Scanner has gone over: none is shorter than its text.
void unescape(std::string* text) {
  constexpr std::string_view kNames = "bfnrt", kCharacters = "\b\f\n\r\t";
  size_t to = 0;
  for (size_t at = 0; at < text->size();) {
    char c = (*text)[at++];
    if (c != '\\') {
      (*text)[to++] = c;
      continue;
    }
    c = (*text)[at++];
    if (c != 'u') {
      const size_t name = kNames.find(c);
      (*text)[to++] = name == std::string_view::npos ? c : kCharacters[name];
      continue;
    }
    int code = code_unit_at(*text, at);
    at += 4;
    if (is_high_surrogate(code)) {
      code = 0x10000 + ((code - 0xD800) << 10) + (code_unit_at(*text, at + 2) - 0xDC00);
      at += 6;
    }
    to += put_utf8(text->data() + to, code);
  }
  text->resize(to);
}

}  // namespace

std::optional<std::string> take_json_string(std::string* line, std::string_view field) {
  Range range;
  if (!Scanner(*line).object_with(field, &range)) return std::nullopt;
  std::string text = std::exchange(*line, std::string());
  text.erase(range.end);
  text.erase(0, range.begin);
  unescape(&text);
  return text;
}

}  // namespace bamtrain

#include "data_tools/json_string.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data_tools/utf16.h"

namespace bamtrain {
namespace {

// Limits of parse_json (core/json.h).
constexpr int kDeepestLevel = 100;
constexpr int64_t kMostMembers = int64_t{1} << 22;

struct Range {
  size_t begin = 0, end = 0;  // between the quotes
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Writes the UTF-8 of a code point to `to`; returns the number of bytes.
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

/// Advances *at past the byte or escape there and writes its value to `to`. Returns the number of
/// bytes written, at most those read. REQUIRES: Scanner has validated the string.
size_t put_unescaped(std::string_view text, size_t* at, char* to) {
  constexpr std::string_view kNames = "bfnrt", kCharacters = "\b\f\n\r\t";
  char c = text[(*at)++];
  if (c != '\\') {
    *to = c;
    return 1;
  }
  c = text[(*at)++];
  if (c != 'u') {
    const size_t name = kNames.find(c);
    *to = name == std::string_view::npos ? c : kCharacters[name];
    return 1;
  }
  int code = code_unit_at(text, *at);
  *at += 4;
  if (is_high_surrogate(code)) {
    code = 0x10000 + ((code - 0xD800) << 10) + (code_unit_at(text, *at + 2) - 0xDC00);
    *at += 6;
  }
  return put_utf8(to, code);
}

/// Iterates over the bytes of a string with its escapes resolved.
class StringBytes {
 public:
  StringBytes(std::string_view text, size_t begin) : text_(text), at_(begin) {}

  /// The next byte; -1 at the end.
  int next() {
    if (next_ == held_) {
      if (text_[at_] == '"') return -1;
      held_ = put_unescaped(text_, &at_, bytes_);
      next_ = 0;
    }
    return static_cast<unsigned char>(bytes_[next_++]);
  }

 private:
  std::string_view text_;
  size_t at_, next_ = 0, held_ = 0;
  char bytes_[4] = {};
};

/// Validates JSON (RFC 8259) without building values. Each function advances past the element it is
/// named after, or returns false if that is missing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// An object and nothing after it; sets `*string` to the member `field`, empty for null.
  bool object_with(std::string_view field, Range* string) {
    bool found = false;
    const auto member = [&](size_t key) {
      if (!is_string(key, field)) return value(1);
      found = true;
      *string = {};
      return take("null") || this->string(string);
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
  /// White space around any value.
  void space() {
    while (is_next(' ') || is_next('\t') || is_next('\r') || is_next('\n')) ++at_;
  }

  /// Whether the string that begins at `begin` equals `bytes`.
  bool is_string(size_t begin, std::string_view bytes) const {
    StringBytes found(text_, begin);
    for (const char c : bytes) {
      if (found.next() != static_cast<unsigned char>(c)) return false;
    }
    return found.next() < 0;
  }

  /// Compares two strings, which begin at a and b.
  bool is_lower(size_t a, size_t b) const {
    StringBytes of_a(text_, a), of_b(text_, b);
    for (;;) {
      const int x = of_a.next(), y = of_b.next();
      if (x != y) return x < y;
      if (x < 0) return false;
    }
  }

  /// Whether the keys from index `first` on are distinct; removes them from keys_.
  bool differ(size_t first) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto lower = [this](size_t a, size_t b) { return is_lower(a, b); };
    const auto same = [this](size_t a, size_t b) { return !is_lower(a, b); };  // a, b sorted
    std::sort(begin, keys_.end(), lower);
    const bool all = std::adjacent_find(begin, keys_.end(), same) == keys_.end();
    keys_.resize(first);
    return all;
  }

  /// An object with distinct keys; member(begin of the key) advances past each value.
  template <class F>
  bool members(const F& member) {
    space();
    if (!take('{')) return false;
    space();
    const size_t first = keys_.size();
    if (!take('}')) {
      do {
        Range key;
        space();
        if (!string(&key)) return false;
        space();
        if (!take(':')) return false;
        space();
        keys_.push_back(key.begin);
        if (!member(key.begin)) return false;
        space();
      } while (take(','));
      if (!take('}')) return false;
    }
    space();
    return differ(first);
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

  /// `level`: depth of the enclosing value.
  bool value(int level) {
    Range unused;
    if (++values_ > kMostMembers) return false;
    if (is_next('"')) return string(&unused);
    if (is_next('{') || is_next('[')) {
      if (level >= kDeepestLevel) return false;
      if (is_next('[')) return list(level + 1);
      return members([&](size_t) { return value(level + 1); });
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

  /// The part of an escape after the backslash.
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
  std::vector<size_t> keys_;  // starts of the keys of the enclosing objects
};

/// Resolves the escapes of a string that Scanner has validated: no escape is shorter than its text.
void unescape(std::string* text) {
  size_t to = 0;
  for (size_t at = 0; at < text->size();) to += put_unescaped(*text, &at, text->data() + to);
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

#include "data/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/error.h"

namespace bamtrain {
namespace {

Error refused(const std::string& where, const std::string& found) {
  return Error(ExitCode::data, where, "a supported pre-tokenizer pattern", found,
               "tokenize with the library of this tokenizer, and train on the shards");
}

/// Translates one character, escape or group at a time.
class Translation {
 public:
  Translation(std::string_view regex, const std::string& where) : regex_(regex), where_(where) {}

  std::string run() {
    while (at_ < regex_.size()) step();
    if (in_class_) refuse("a class without its end");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw refused(where_, what + " in " + std::string(regex_));
  }

  char ahead(size_t n) const { return at_ + n < regex_.size() ? regex_[at_ + n] : '\0'; }

  void take(size_t n) {
    out_ += regex_.substr(at_, n);
    at_ += n;
  }

  void step() {
    const char c = regex_[at_];
    if (c == '\\') return escape();
    if (in_class_) return member(c);
    switch (c) {
      case '^':
      case '$':
        refuse(std::string(1, c));
      case '[':
        in_class_ = true;
        take(1);
        if (ahead(0) == '^') take(1);
        if (ahead(0) == ']') refuse("a class that begins with ]");
        return;
      case '(':
        return group();
      default:
        take(1);
    }
  }

  void member(char c) {
    if (c == '[') refuse("a class within a class");
    if (c == '&' && ahead(1) == '&') refuse("&&");
    if (c == ']') in_class_ = false;
    take(1);
  }

  /// Accepts plain, non-capturing and case-insensitive groups and lookaheads.
  void group() {
    static constexpr std::array<std::string_view, 5> kKnown = {"(?:", "(?i:", "(?=", "(?!", "("};
    for (const std::string_view known : kKnown) {
      if (regex_.substr(at_, known.size()) != known) continue;
      if (known == "(" && (ahead(1) == '?' || ahead(1) == '*')) break;
      return take(known.size());
    }
    refuse("a group " + std::string(regex_.substr(at_, 4)));
  }

  void escape() {
    const char c = ahead(1);
    if (c == 's' || c == 'S') {
      out_ += c == 's' ? R"(\p{White_Space})" : R"(\P{White_Space})";
      at_ += 2;
    } else if (c == 'p' || c == 'P') {
      property();
    } else if (c == 'x') {
      number();
    } else if (std::string_view("dDrntf").find(c) != std::string_view::npos ||
               (c > ' ' && c < 0x7F && !std::isalnum(static_cast<unsigned char>(c)))) {
      take(2);
    } else {
      refuse(std::string("\\") + c);
    }
  }

  /// General categories have one meaning, scripts have two: PCRE2 is told to use that of the other
  /// engines.
  void property() {
    const size_t open = at_ + 2, close = regex_.find('}', at_);
    if (ahead(2) != '{') {
      if (std::string_view("LMNPSZC").find(ahead(2)) == std::string_view::npos) {
        refuse("a property without a name");
      }
      return take(3);
    }
    if (close == std::string_view::npos) refuse("a property without its end");
    std::string_view name = regex_.substr(open + 1, close - open - 1);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const bool category = !name.empty() && name.size() <= 2 &&
                          std::string_view("LMNPSZC").find(name[0]) != std::string_view::npos;
    out_ += regex_.substr(at_, 2);
    out_ += '{';
    if (negated) out_ += '^';
    if (!category) out_ += "sc:";
    out_ += name;
    out_ += '}';
    at_ = close + 1;
  }

  void number() {
    size_t n = 2;
    if (ahead(2) == '{') {
      while (std::isxdigit(static_cast<unsigned char>(ahead(n + 1)))) ++n;
      if (n == 2 || ahead(n + 1) != '}') refuse("a number of a character without its end");
      return take(n + 2);
    }
    while (n < 4 && std::isxdigit(static_cast<unsigned char>(ahead(n)))) ++n;
    if (n != 4) refuse("\\x without two digits");
    take(n);
  }

  std::string_view regex_;
  const std::string& where_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

std::string message_of(int code) {
  std::array<unsigned char, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

std::string pcre2_of(const std::string& regex, const std::string& where) {
  return Translation(regex, where).run();
}

class SplitPattern::Code {
 public:
  Code(const std::string& regex, const std::string& where) {
    const std::string pattern = pcre2_of(regex, where);
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ = pcre2_compile(units(pattern), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
    if (code_ == nullptr) {
      throw refused(where, message_of(error) + " at character " + std::to_string(at) + " of " +
                               pattern + ", by PCRE2");
    }
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);  // without JIT support, matching is interpreted
  }
  ~Code() { pcre2_code_free(code_); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  const pcre2_code* get() const { return code_; }

 private:
  pcre2_code* code_;
};

SplitPattern::SplitPattern(const std::string& regex, const std::string& where)
    : code_(std::make_unique<Code>(regex, where)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

struct SplitPattern::Matcher::Room {
  static constexpr size_t kStack = size_t{1} << 15, kMostStack = size_t{1} << 24;

  explicit Room(const pcre2_code* c)
      : code(c),
        match(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kStack, kMostStack, nullptr)) {
    require(match != nullptr && context != nullptr, "memory for PCRE2");
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Room() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  const pcre2_code* code;
  pcre2_match_data* match;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
  size_t from = 0;             // start of the search for the next match
  size_t last_end = SIZE_MAX;  // end of the previous match; SIZE_MAX: no match yet
  size_t end = 0;              // end of the match after the part that next() last returned
  bool ahead = false;          // `end` is valid and not yet returned
};

SplitPattern::Matcher::Matcher(const SplitPattern& pattern)
    : room_(std::make_unique<Room>(pattern.code_->get())) {}
SplitPattern::Matcher::Matcher(Matcher&&) noexcept = default;
SplitPattern::Matcher& SplitPattern::Matcher::operator=(Matcher&&) noexcept = default;
SplitPattern::Matcher::~Matcher() = default;

size_t SplitPattern::Matcher::next(std::string_view text, size_t begin) {
  Room& r = *room_;
  if (begin == 0) {
    r.from = 0;
    r.last_end = SIZE_MAX;
    r.ahead = false;
  }
  if (std::exchange(r.ahead, false)) return r.end;
  while (r.from < text.size()) {
    const int found = pcre2_match(r.code, units(text), text.size(), r.from, PCRE2_NO_UTF_CHECK,
                                  r.match, r.context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw Error(ExitCode::internal, "PCRE2", "a match of every text", message_of(found),
                  "report the text that did this");
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(r.match);
    const size_t first = bounds[0], end = bounds[1];
    if (first == end && end == r.last_end) {
      ++r.from;
      while (r.from < text.size() && (text[r.from] & 0xC0) == 0x80) ++r.from;
      continue;
    }
    r.from = r.last_end = end;
    if (first == begin && end == begin) continue;  // already split here
    if (first == begin) return end;
    r.end = end;
    r.ahead = end > first;
    return first;
  }
  return text.size();
}

}  // namespace bamtrain

#pragma once
// Regular expressions that cut text before a byte-level BPE merges it, by PCRE2, with the meaning
// that they have where tokenizers are made: Oniguruma's in Hugging Face's tokenizers, Rust's regex
// in tiktoken.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// Immutable; any number of threads may cut at once, each with a Matcher of its own.
class SplitPattern {
 public:
  /// Error (data) at `where` for what is no pattern, and for what the libraries do not agree on:
  /// ^ $ \w \b \h \v \R, classes within classes, back references and the like. None of the
  /// tokenizers in use has those.
  SplitPattern(const std::string& regex, const std::string& where);
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  class Matcher;

 private:
  class Code;
  std::unique_ptr<Code> code_;
};

/// The room that matching takes.
class SplitPattern::Matcher {
 public:
  explicit Matcher(const SplitPattern& pattern);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  /// The end of the piece that begins at text[begin], a match or what lies before the next one. An
  /// empty match cuts too, but for one right behind the match before, and no match begins there
  /// then: as Oniguruma's iteration over matches has it. REQUIRES: valid UTF-8, begin <
  /// text.size(), called for the pieces of one text in their order, the first one at 0.
  size_t next(std::string_view text, size_t begin);

 private:
  struct Room;
  std::unique_ptr<Room> room_;
};

/// `regex` in PCRE2's words: \s and \S are Unicode's White_Space, \p{NAME} of a script is its
/// Script. Error as above.
std::string pcre2_of(const std::string& regex, const std::string& where);

}  // namespace bamtrain

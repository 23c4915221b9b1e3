#pragma once
// Regular expressions that split text before byte-level BPE merging. They run on PCRE2, with the
// meaning of the tokenizers' own engines: Oniguruma in Hugging Face's tokenizers, Rust's regex in
// tiktoken.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bamtrain {

/// Immutable; threads may split concurrently, each with its own Matcher.
class SplitPattern {
 public:
  /// Throws Error (data) at `where` for an invalid pattern, and for syntax on which the libraries
  /// disagree: ^ $ \w \b \h \v \R, nested classes, back references and the like. No tokenizer in
  /// use has those.
  SplitPattern(const std::string& regex, const std::string& where);
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  class Matcher;

 private:
  class Code;
  std::unique_ptr<Code> code_;
};

/// Scratch memory of matching.
class SplitPattern::Matcher {
 public:
  explicit Matcher(const SplitPattern& pattern);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  /// Returns the end of the part that begins at text[begin]: a match, or the text before the next
  /// match. An empty match splits too, except directly after the previous match, and no match
  /// begins there then: Oniguruma iterates over matches this way. REQUIRES: valid UTF-8, begin <
  /// text.size(); called for the parts of one text in order, the first at 0.
  size_t next(std::string_view text, size_t begin);

 private:
  struct Room;
  std::unique_ptr<Room> room_;
};

/// Translates `regex` to PCRE2: \s and \S become Unicode's White_Space, \p{NAME} of a script
/// becomes its Script property. Errors: as the constructor of SplitPattern.
std::string pcre2_of(const std::string& regex, const std::string& where);

}  // namespace bamtrain

#include "prompts/sentences.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace bamtrain {

namespace {

constexpr std::array<std::string_view, 22> kAbbreviations = {
    "Mr.", "Mrs.", "Ms.", "Dr.",  "Prof.", "St.",  "Jr.",  "Sr.",  "Gen.", "Col.", "Capt.",
    "No.", "vs.",  "cf.", "e.g.", "i.e.",  "etc.", "Inc.", "Ltd.", "Co.",  "Fig.", "al."};

/// Quotes and brackets; typographic ones have several bytes.
constexpr std::array<std::string_view, 6> kOpening = {"\"", "'", "(", "[", "\u201c", "\u2018"};
constexpr std::array<std::string_view, 6> kClosing = {"\"", "'", ")", "]", "\u201d", "\u2019"};

std::string_view without_closing(std::string_view word) {
  const auto closes = [&](std::string_view mark) { return word.ends_with(mark); };
  while (true) {
    const auto mark = std::find_if(kClosing.begin(), kClosing.end(), closes);
    if (mark == kClosing.end()) return word;
    word.remove_suffix(mark->size());
  }
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

bool may_end(std::string_view word) {
  word = without_closing(word);
  if (word.ends_with('!') || word.ends_with('?')) return true;
  if (!word.ends_with('.')) return false;
  if (word.size() == 2 && is_capital(word[0])) return false;
  const size_t begin = word.find_first_not_of("(\"'[");
  if (begin != std::string_view::npos) word.remove_prefix(begin);
  return std::find(kAbbreviations.begin(), kAbbreviations.end(), word) == kAbbreviations.end();
}

bool may_begin(std::string_view word) {
  return is_capital(word[0]) || (word[0] >= '0' && word[0] <= '9') ||
         std::any_of(kOpening.begin(), kOpening.end(),
                     [&](std::string_view mark) { return word.starts_with(mark); });
}

}  // namespace

std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> sentences;
  std::string_view before;  // previous word
  size_t begin = 0;         // of the current sentence
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    if (at > begin && may_end(before) && may_begin(word)) {
      sentences.push_back(text.substr(begin, at - 1 - begin));
      begin = at;
    }
    before = word;
    at = end + 1;
  }
  if (!text.empty()) sentences.push_back(text.substr(begin));
  return sentences;
}

}  // namespace bamtrain

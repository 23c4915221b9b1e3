#include "prompts/drawn_text.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "prompts/words.h"

namespace bamtrain {

namespace {

const std::string& one_of(const std::vector<std::string>& all, Draws* draws) {
  return all[static_cast<size_t>(draws->below(std::ssize(all)))];
}

/// RFC 4122: random but for the version, 4, and the variant, binary 10.
std::string draw_uuid(Draws* draws) {
  const auto bits = [draws](int n) { return draws->below(int64_t{1} << n); };
  const int64_t low = bits(32), mid = bits(16), high = bits(12), clock = bits(14), node = bits(48);
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", low, mid, high, 0x8000 | clock, node);
}

}  // namespace

std::string name_of(DrawnKind kind) {
  switch (kind) {
    case DrawnKind::numbers:
      return "numbers";
    case DrawnKind::words:
      return "words";
    case DrawnKind::uuids:
      return "uuids";
  }
  broken_contract("a kind of text that is drawn");
}

std::string draw_text(DrawnKind kind, Draws* draws) {
  constexpr int64_t kDigits = 7;
  switch (kind) {
    case DrawnKind::numbers:
      return draw_number(kDigits, draws);
    case DrawnKind::words: {
      const std::string& adjective = one_of(adjectives(), draws);
      return adjective + "-" + one_of(nouns(), draws);
    }
    case DrawnKind::uuids:
      return draw_uuid(draws);
  }
  broken_contract("a kind of text that is drawn");
}

std::string draw_number(int64_t digits, Draws* draws) {
  require(digits >= 1 && digits <= 18, "digits of a number");
  int64_t least = 1;
  for (int64_t digit = 1; digit < digits; ++digit) least *= 10;
  return std::to_string(draws->between(least, 10 * least - 1));
}

std::string draw_letters(int64_t count, char first, Draws* draws) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>(first + draws->below(26));
  return text;
}

std::vector<std::string> draw_different(int64_t count, const std::vector<std::string>& others,
                                        const std::function<std::string()>& draw) {
  std::unordered_set<std::string> seen(others.begin(), others.end());
  std::vector<std::string> texts;
  while (std::ssize(texts) < count) {
    std::string text = draw();
    if (seen.insert(text).second) texts.push_back(std::move(text));
  }
  return texts;
}

void shuffle(std::vector<std::string>* texts, Draws* draws) {
  const int64_t n = std::ssize(*texts);
  for (int64_t i = 0; i + 1 < n; ++i) {
    std::swap((*texts)[static_cast<size_t>(i)],
              (*texts)[static_cast<size_t>(draws->between(i, n - 1))]);
  }
}

}  // namespace bamtrain

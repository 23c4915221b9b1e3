#pragma once
// Helpers shared by the tests of prompts.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "prompts/prompt_set.h"

namespace bamtrain::testing {

/// One line of RULER's noise haystacks.
inline const std::string kFillerLine =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// One token per byte, so that a prompt's length is obvious.
inline int64_t bytes(const std::string& text) { return std::ssize(text); }

/// Whether these counts are plausible for equal probabilities: chi-squared is within 4.5 standard
/// deviations of its mean.
inline bool is_uniform(const std::vector<int64_t>& counts) {
  double total = 0, x = 0;
  for (const int64_t n : counts) total += static_cast<double>(n);
  const double expected = total / static_cast<double>(counts.size());
  for (const int64_t n : counts) {
    const double apart = static_cast<double>(n) - expected;
    x += apart * apart / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  return x < freedom + 4.5 * std::sqrt(2 * freedom);
}

inline std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t end; (end = text.find(separator, at)) != std::string::npos;
       at = end + separator.size()) {
    parts.push_back(text.substr(at, end - at));
  }
  parts.push_back(text.substr(at));
  return parts;
}

/// The text between `before` and `after`, each of which occurs once in `text`.
inline std::string between(const std::string& text, const std::string& before,
                           const std::string& after) {
  const size_t begin = text.find(before);
  REQUIRE(begin != std::string::npos);
  const size_t end = text.find(after, begin + before.size());
  REQUIRE(end != std::string::npos);
  return text.substr(begin + before.size(), end - begin - before.size());
}

inline std::string at(const TextPrompt& p, const TextPrompt::Place& place) {
  return p.text.substr(place.at, place.size);
}

inline std::vector<std::string> sorted(std::vector<std::string> all) {
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace bamtrain::testing

#include "core/closest_match.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace bamtrain {

namespace {

// No key is longer. Only this much of a longer word is compared, so a hostile file costs nothing.
constexpr size_t kLongestCompared = 64;

/// Names in other programs, and the names here.
constexpr std::pair<const char*, const char*> kMeant[] = {
    {"gpu", "cuda"}, {"adam", "adamw"}, {"float32", "fp32"}, {"bfloat16", "bf16"}};

std::string folded(const std::string& word) {
  std::string out = word.substr(0, kLongestCompared);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Whether `word` is `name`, or a prefix of it, with a typo or two.
bool is_slip(const std::string& word, const std::string& name) {
  const size_t longer = std::max(folded(word).size(), folded(name).size());
  const size_t most = std::max<size_t>(1, longer / 3);
  const size_t distance = edit_distance(word, name);
  if (distance <= most && (distance < longer || distance == 0)) return true;
  return word.size() >= 3 && word.size() < name.size() &&
         edit_distance(word, name.substr(0, word.size())) <= word.size() / 3;
}

}  // namespace

size_t edit_distance(const std::string& first, const std::string& second) {
  const std::string a = folded(first), b = folded(second);
  // Rows i - 2, i - 1 and i of the table of distances between prefixes.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string closest_match(const std::string& word, const std::vector<std::string>& candidates) {
  for (const auto& [other, own] : kMeant) {
    if (folded(word) != other) continue;
    if (std::ranges::find(candidates, own) != candidates.end()) return own;
  }
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (!is_slip(word, candidate)) continue;
    const size_t distance = edit_distance(word, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise) {
  const std::string near = closest_match(word, candidates);
  return near.empty() ? otherwise : "did you mean " + near + "?";
}

}  // namespace bamtrain

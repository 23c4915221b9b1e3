#include "prompts/string_match.h"

#include <algorithm>

#include "core/error.h"

namespace bamtrain {

namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

double string_match(const std::string& output, const std::vector<std::string>& references) {
  require(!references.empty(), "a reference at least");
  const std::string text = lower(output);
  const auto found = std::count_if(references.begin(), references.end(), [&](const std::string& r) {
    return text.find(lower(r)) != std::string::npos;
  });
  return static_cast<double>(found) / static_cast<double>(references.size());
}

double string_match_any(const std::string& output, const std::vector<std::string>& references) {
  return string_match(output, references) > 0 ? 1.0 : 0.0;
}

}  // namespace bamtrain

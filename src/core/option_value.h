#pragma once
// Command-line values, for programs that use CLI11. Each function makes an option refuse invalid
// values: Error (ExitCode::usage) naming the option. (CLI11's own parsers accept "" as 0, let
// numbers outside a type's range wrap, and describe an enumerator by its number.) The functions
// return the option; for a list they check every value.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class Option;
}

namespace bamtrain {

/// Decimal integers from `minimum` to `maximum`.
CLI::Option* take_integers(CLI::Option* option, int64_t minimum, int64_t maximum);

/// Finite decimal numbers for which `holds` is true; `expected` describes them in words.
CLI::Option* take_numbers(CLI::Option* option, const std::string& expected,
                          const std::function<bool(double)>& holds);

/// Byte counts from 1 to 2^63 - 1, with or without a unit: 500, 500MB (10^6), 2GiB (2^30).
CLI::Option* take_bytes(CLI::Option* option);

/// One of these words.
CLI::Option* take_words(CLI::Option* option, const std::vector<std::string>& words);
/// The same, but the option receives the text paired with the word.
CLI::Option* take_words_for(CLI::Option* option,
                            const std::vector<std::pair<std::string, std::string>>& words);

/// The same for an option of type Enum.
template <class Enum>
CLI::Option* take_names(CLI::Option* option,
                        const std::vector<std::pair<std::string, Enum>>& names) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const auto& [name, value] : names) {
    words.emplace_back(name, std::to_string(static_cast<int>(value)));
  }
  return take_words_for(option, words);
}

}  // namespace bamtrain

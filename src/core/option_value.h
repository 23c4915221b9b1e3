#pragma once
// Values on the command line, for programs whose options are CLI11's. Each of these functions makes
// an option refuse, by its name, what is no such value: Error (ExitCode::usage). (CLI11's own
// readings take "" for 0, let numbers past a type's range wrap, and describe an enumerator by its
// number.) They return the option; of a list they read every value.

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

/// Finite decimal numbers for which `holds`; `expected` says in words which these are.
CLI::Option* take_numbers(CLI::Option* option, const std::string& expected,
                          const std::function<bool(double)>& holds);

/// Numbers of bytes from 1 to 2^63 - 1, with a unit or none: 500, 500MB (10^6), 2GiB (2^30).
CLI::Option* take_bytes(CLI::Option* option);

/// One of these words.
CLI::Option* take_words(CLI::Option* option, const std::vector<std::string>& words);
/// The same; the option reads the text that stands beside the word.
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

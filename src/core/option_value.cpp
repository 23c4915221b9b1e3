#include "core/option_value.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/abbreviate.h"
#include "core/digit_separators.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {

namespace {

/// All of `text` as a number; nullopt if it is not one.
template <class T>
std::optional<T> whole(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

/// Makes the option pass each value through `read`, which returns the text for CLI11 to parse, or
/// throws. `shown`: what --help calls a value.
CLI::Option* take(CLI::Option* option, const std::string& shown,
                  const std::function<std::string(const std::string&)>& read) {
  const auto replace = [read](std::string& text) {
    text = read(text);
    return std::string();
  };
  return option->transform(CLI::Validator(replace, ""))->type_name(shown);
}

[[noreturn]] void refuse(const std::string& option, const std::string& expected,
                         const std::string& text, const std::string& remedy) {
  throw Error(ExitCode::usage, option, expected, text.empty() ? "an empty text" : abbreviate(text),
              remedy);
}

bool is_integer(const std::string& text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first && text.find_first_not_of("0123456789", first) == std::string::npos;
}

/// 2^10 or 10^3 to the power of the unit's prefix; nullopt if it is not a unit of bytes.
std::optional<int64_t> unit_of(std::string unit) {
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.ends_with('b')) unit.pop_back();
  const int64_t base = unit.size() == 2 && unit[1] == 'i' ? 1024 : 1000;
  if (base == 1024) unit.pop_back();
  if (unit.empty()) return 1;
  const size_t power = std::string("kmgtp").find(unit);
  if (unit.size() > 1 || power == std::string::npos) return std::nullopt;
  int64_t factor = base;
  for (size_t i = 0; i < power; ++i) factor *= base;
  return factor;
}

std::optional<int64_t> bytes_in(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = whole<int64_t>(text.substr(0, digits));
  const auto unit = unit_of(text.substr(digits));
  if (!number || !unit || *number < 1 || *number > INT64_MAX / *unit) return std::nullopt;
  return *number * *unit;
}

}  // namespace

CLI::Option* take_integers(CLI::Option* option, int64_t minimum, int64_t maximum) {
  const std::string range = std::to_string(minimum) + " to " + std::to_string(maximum);
  const auto read = [name = option->get_name(), range, minimum, maximum](const std::string& text) {
    const auto value = whole<int64_t>(without_separators(text));
    if (value && *value >= minimum && *value <= maximum) return std::to_string(*value);
    refuse(name, "an integer from " + range, text,
           is_integer(text) ? "" : "write a whole number in digits");
  };
  return take(option, "N", read);
}

CLI::Option* take_numbers(CLI::Option* option, const std::string& expected,
                          const std::function<bool(double)>& holds) {
  return take(option, "X", [name = option->get_name(), expected, holds](const std::string& text) {
    const auto value = whole<double>(text);
    if (value && std::isfinite(*value) && holds(*value)) return text;
    refuse(name, expected, text, value ? "" : "write a number");
  });
}

CLI::Option* take_bytes(CLI::Option* option) {
  return take(option, "BYTES", [name = option->get_name()](const std::string& text) {
    if (const auto bytes = bytes_in(text)) return std::to_string(*bytes);
    refuse(name, "a number of bytes above 0 and below 2^63", text,
           "write digits and a unit, like 500MB or 2GiB");
  });
}

CLI::Option* take_words_for(CLI::Option* option,
                            const std::vector<std::pair<std::string, std::string>>& words) {
  std::vector<std::string> names;
  std::string shown;
  for (const auto& [word, unused] : words) {
    names.push_back(word);
    shown += (shown.empty() ? "" : "|") + word;
  }
  const auto read = [name = option->get_name(), words, names](const std::string& text) {
    for (const auto& [word, value] : words) {
      if (word == text) return value;
    }
    throw unknown_name(ExitCode::usage, name, "value", text, names);
  };
  return take(option, shown, read);
}

CLI::Option* take_words(CLI::Option* option, const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> themselves;
  for (const std::string& word : words) themselves.emplace_back(word, word);
  return take_words_for(option, themselves);
}

}  // namespace bamtrain

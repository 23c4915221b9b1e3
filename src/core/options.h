#pragma once
// Typed options that a mechanism declares next to its formula: the single source for the config
// reader, the schema and the documentation.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"

namespace bamtrain {

class Options;

/// The version of run configurations that this program writes. It also reads all earlier versions.
/// A missing key takes the default of the configuration's own version.
inline constexpr int64_t kConfigVersion = 3;

/// Whether two versions differ at most in names of keys: version 1 has other defaults, version 3
/// renames a key of version 2.
constexpr bool have_same_defaults(int64_t version, int64_t other) {
  return version == other || (version > 1 && other > 1);
}

using StringList = std::vector<std::string>;
using OptionValue = std::variant<bool, double, std::string, StringList>;

struct OptionSpec {
  std::string name;
  std::string description;
  OptionValue default_value;                 // the alternative it holds is the option's type
  std::vector<std::string> choices = {};     // for strings and string lists: the allowed values
  double minimum = -1e300, maximum = 1e300;  // for numbers, both inclusive
  bool integer = false;                      // for numbers
  std::optional<OptionValue> default_v1 = std::nullopt;  // config_version 1: another default
  std::string word = {};  // for numbers from 1 on: a word that may replace 0
  /// For a number whose 0 means "derived from the training length": its value at training length T
  /// if all layers have this window (0: no window). Returns 0 if the other options make the number
  /// meaningless. Null for all other options.
  double (*of_length)(const Options&, int64_t T, int64_t window) = nullptr;
  /// For a run that starts from another model's weights with other options: whether the number
  /// follows that model's training length even if that model's own options make it meaningless.
  bool of_source_length = false;

  const OptionValue& default_of(int64_t config_version) const {
    return config_version == 1 && default_v1 ? *default_v1 : default_value;
  }
};

/// A whole number whose 0, the default, means `of_length` (OptionSpec).
inline OptionSpec length_option(const std::string& name, const std::string& description,
                                double (*of_length)(const Options&, int64_t T, int64_t window),
                                bool of_source_length = false) {
  OptionSpec o = {name, description, 0.0, {}, 0.0, 1e9, true};
  o.of_length = of_length;
  o.of_source_length = of_source_length;
  return o;
}

/// The option values of a mechanism by name.
class Options {
 public:
  void set(const std::string& name, OptionValue value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::map<std::string, OptionValue>& values() const { return values_; }
  bool operator==(const Options&) const = default;

  bool flag(const std::string& name) const { return get<bool>(name); }
  double number(const std::string& name) const { return get<double>(name); }
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  const StringList& list(const std::string& name) const { return get<StringList>(name); }
  /// Whether the list with that name contains `entry`.
  bool lists(const std::string& name, const std::string& entry) const {
    const StringList& all = list(name);
    return std::find(all.begin(), all.end(), entry) != all.end();
  }

 private:
  template <class T>
  const T& get(const std::string& name) const {
    const auto it = values_.find(name);
    require(it != values_.end() && std::holds_alternative<T>(it->second),
            "an option that its mechanism declares, with the declared type");
    return std::get<T>(it->second);
  }
  std::map<std::string, OptionValue> values_;
};

/// The declared defaults.
inline Options default_options(const std::vector<OptionSpec>& specs,
                               int64_t config_version = kConfigVersion) {
  Options o;
  for (const OptionSpec& s : specs) o.set(s.name, s.default_of(config_version));
  return o;
}

}  // namespace bamtrain

#pragma once
// Typed options that a mechanism declares beside its formula, so that the config reader, the schema
// and the documentation know them without being told twice.

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

/// The version of run configurations that this program writes. It reads all before it: what a
/// configuration leaves open has the value that its own version gives it.
inline constexpr int64_t kConfigVersion = 3;

/// Whether two versions differ in names of keys at most: 1 has other defaults, 3 renames a key
/// of 2.
constexpr bool have_same_defaults(int64_t version, int64_t other) {
  return version == other || (version > 1 && other > 1);
}

using StringList = std::vector<std::string>;
using OptionValue = std::variant<bool, double, std::string, StringList>;

struct OptionSpec {
  std::string name;
  std::string description;
  OptionValue default_value;              // its default; the alternative held is the option's type
  std::vector<std::string> choices = {};  // for strings and string lists: the allowed values
  double minimum = -1e300, maximum = 1e300;              // for numbers, both inclusive
  bool integer = false;                                  // for numbers
  std::optional<OptionValue> default_v1 = std::nullopt;  // config_version 1: another default
  std::string word = {};  // for numbers from 1 on: what may be written in place of 0
  /// Of a number whose 0 stands for one that the training length gives: that one, where all layers
  /// have this window (0: none). 0 where the other options leave it no meaning. Null: of others.
  double (*of_length)(const Options&, int64_t T, int64_t window) = nullptr;
  /// Whether a model whose options leave it no meaning gives it by its own training length all the
  /// same, to a run that begins with that model's weights and has other options.
  bool of_source_length = false;

  const OptionValue& default_of(int64_t config_version) const {
    return config_version == 1 && default_v1 ? *default_v1 : default_value;
  }
};

/// A mechanism's chosen option values by name.
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
  /// Whether the list of that name holds `entry`.
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

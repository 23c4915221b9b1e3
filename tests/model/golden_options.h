#pragma once
// The options of a mechanism, from the JSON in golden files.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/options.h"

namespace bamtrain::testing {

inline std::map<std::string, OptionValue> options_of(const nlohmann::json& mechanism) {
  std::map<std::string, OptionValue> options;
  for (const auto& [key, value] : mechanism.items()) {
    if (key == "name") continue;
    if (value.is_boolean()) {
      options[key] = value.get<bool>();
    } else if (value.is_number()) {
      options[key] = value.get<double>();
    } else if (value == "n/2") {  // topk's k
      options[key] = 0.0;
    } else if (value.is_string()) {
      options[key] = value.get<std::string>();
    } else {
      options[key] = value.get<StringList>();
    }
  }
  return options;
}

}  // namespace bamtrain::testing

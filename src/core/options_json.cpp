#include "core/options_json.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace bamtrain {

using nlohmann::ordered_json;

ordered_json option_json(const OptionSpec& o, const OptionValue& value) {
  if (const auto* number = std::get_if<double>(&value); number && o.integer) {
    if (!o.word.empty() && *number == 0) return o.word;
    return static_cast<int64_t>(*number);
  }
  return std::visit([](const auto& v) { return ordered_json(v); }, value);
}

ordered_json options_json(const std::vector<OptionSpec>& specs, const Options& options) {
  ordered_json out = ordered_json::object();
  for (const OptionSpec& o : specs) {
    const auto it = options.values().find(o.name);
    require(it != options.values().end(), "a value for every option");
    out[o.name] = option_json(o, it->second);
  }
  return out;
}

}  // namespace bamtrain

#include "config/option.h"

#include <nlohmann/json.hpp>

#include "config/mechanism.h"
#include "core/error.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// OptionSpec represents "no limit" by a number of this size.
constexpr double kUnlimited = 1e300;

ValueSchema number_schema(const OptionSpec& o) {
  if (!o.word.empty()) {
    return {{"oneOf", {integer_value(1, static_cast<int64_t>(o.maximum)), one_of({o.word})}}};
  }
  if (o.integer) {
    return integer_value(static_cast<int64_t>(o.minimum), static_cast<int64_t>(o.maximum));
  }
  ValueSchema s = {{"type", "number"}};
  if (o.minimum > -kUnlimited) s["minimum"] = o.minimum;
  if (o.maximum < kUnlimited) s["maximum"] = o.maximum;
  return s;
}

OptionValue option_value(const OptionSpec& o, const json& value) {
  if (!o.word.empty() && value == o.word) return 0.0;
  return std::visit(
      [&value](const auto& default_value) -> OptionValue {
        return value.get<std::decay_t<decltype(default_value)>>();
      },
      o.default_value);
}

}  // namespace

ValueSchema option_schema(const OptionSpec& o) {
  ValueSchema s;
  if (std::holds_alternative<bool>(o.default_value)) {
    s = boolean_value();
  } else if (std::holds_alternative<double>(o.default_value)) {
    s = number_schema(o);
  } else if (std::holds_alternative<std::string>(o.default_value)) {
    s = o.choices.empty() ? any_text() : one_of(o.choices);
  } else {
    s = set_of(o.choices.empty() ? any_text() : one_of(o.choices));
  }
  s["description"] = with_keys(o.description, "");
  s["default"] = option_json(o, o.default_value);
  if (o.default_v1) {
    s["$comment"] = "with config_version 1: `" + option_json(o, *o.default_v1).dump() + "`";
  }
  return s;
}

namespace {

void check_option(const json& value, const OptionSpec& o, const std::string& where) {
  if (o.word.empty()) return check_value(value, option_schema(o), where);
  if (value == o.word) return;
  const ValueSchema numbers = integer_value(1, static_cast<int64_t>(o.maximum));
  if (is_whole(value) && value.get<double>() >= 1 && value.get<double>() <= o.maximum) return;
  std::string remedy = "write a whole number, or \"" + o.word + "\"";
  if (is_whole(value)) remedy = "";
  if (value.is_string()) {
    const std::string of_text = remedy_for_text(value.get_ref<const std::string&>(), numbers);
    if (!of_text.empty()) remedy = of_text;
  }
  throw Error(ExitCode::config, where, describe(number_schema(o)), describe_value(value), remedy);
}

}  // namespace

Options read_options(const json& value, const std::vector<OptionSpec>& specs,
                     const std::string& path, const Origin& origin, int64_t version) {
  Options out = default_options(specs, version);
  for (const OptionSpec& o : specs) {
    if (!value.contains(o.name)) continue;
    check_option(value[o.name], o, origin.at(path + "." + o.name));
    out.set(o.name, option_value(o, value[o.name]));
  }
  return out;
}

}  // namespace bamtrain

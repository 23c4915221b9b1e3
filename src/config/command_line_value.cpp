#include "config/command_line_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/digit_separators.h"

namespace bamtrain {

namespace {

using nlohmann::json;

bool allows_type(const ValueSchema& schema, const std::string& type) {
  const auto found = schema.find("type");
  if (found == schema.end()) return false;
  return *found == type ||
         (found->is_array() && std::find(found->begin(), found->end(), type) != found->end());
}

/// The number in 1_000; nullopt without separators, or for another text.
std::optional<json> separated_number(const std::string& text) {
  const std::string digits = without_separators(text);
  json number = json::parse(digits, nullptr, false);
  if (digits == text || !number.is_number()) return std::nullopt;
  return number;
}

/// Whether a comma cannot be part of an element.
bool has_plain_elements(const ValueSchema& list) {
  const auto items = list.find("items");
  if (items == list.end()) return false;
  if (items->contains("oneOf")) {  // mechanisms, by name
    return std::ranges::any_of((*items)["oneOf"],
                               [](const ValueSchema& s) { return s.contains("enum"); });
  }
  return allows_type(*items, "number") || allows_type(*items, "integer") || items->contains("enum");
}

json element(const std::string& text, const ValueSchema& items) {
  const json read = json::parse(text, nullptr, false);
  return command_line_value(text, read.is_discarded() ? json(text) : read, items);
}

}  // namespace

json command_line_value(const std::string& text, const json& parsed, const ValueSchema& schema) {
  if (parsed.is_structured() || text.starts_with('"')) return parsed;
  if (schema.contains("oneOf")) {
    for (const ValueSchema& one : schema["oneOf"]) {
      // A single text is a name, not a list of one.
      if (allows_type(one, "array") && text.find(',') == std::string::npos) continue;
      json value = command_line_value(text, parsed, one);
      if (value != parsed) return value;
    }
    return parsed;
  }
  if (allows_type(schema, "boolean") && (text == "True" || text == "False")) return text == "True";
  if (allows_type(schema, "integer") || allows_type(schema, "number")) {
    return separated_number(text).value_or(parsed);
  }
  if (!allows_type(schema, "array") || text.empty() || parsed.is_null() ||
      !has_plain_elements(schema)) {
    return parsed;
  }
  json list = json::array();
  for (size_t begin = 0; begin <= text.size();) {  // "64," has an empty element
    const size_t end = std::min(text.find(',', begin), text.size());
    list.push_back(element(text.substr(begin, end - begin), schema["items"]));
    begin = end + 1;
  }
  return list;
}

}  // namespace bamtrain

#include "config/overrides.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "config/command_line_value.h"
#include "config/keys.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;

// The same as the nesting limit of files: each name is a level, and functions recurse over levels.
constexpr int64_t kMostNames = 100;

[[noreturn]] void refuse_form(const std::string& text, const std::string& found) {
  throw Error(ExitCode::usage, "--set " + abbreviate(text), "key=value", found,
              "write it like train.steps=1000");
}

json parse_value(const std::string& value, const std::string& where) {
  const size_t first = value.find_first_not_of(" \t\r\n");
  const bool structured =
      first != std::string::npos && std::string("{[\"").find(value[first]) != std::string::npos;
  if (structured) return parse_json(value, {where, ExitCode::config});
  try {
    return json::parse(value);
  } catch (const json::out_of_range&) {
    // The text begins with a number outside the range of double; as a whole it may be a name.
    char* end = nullptr;
    std::strtod(value.c_str(), &end);
    if (static_cast<size_t>(end - value.c_str()) == value.size()) {
      throw Error::fault(ExitCode::config, where,
                         "number out of range (at most 1.8e308): " + abbreviate(value),
                         "choose a smaller one, or write a text in double quotes");
    }
  } catch (const json::parse_error&) {  // a bare string
  }
  try {
    json(value).dump();
  } catch (const json::exception&) {
    throw Error::fault(ExitCode::config, where, "not valid UTF-8", "write it in UTF-8");
  }
  return value;
}

/// The schema of option `within` ("base.kernel") of the mechanism that `value` names; empty if it
/// has none.
ValueSchema schema_of_option(const std::string& within, const json* value,
                             const ValueSchema& mechanisms) {
  const json name = value != nullptr && value->is_object() ? value->value("name", json()) : json();
  for (const ValueSchema& one : mechanisms.value("oneOf", ValueSchema::array())) {
    const auto properties = one.find("properties");
    if (properties == one.end() || (*properties)["name"]["const"] != name) continue;
    const size_t dot = within.find('.');
    const auto option = properties->find(within.substr(0, dot));
    if (option == properties->end()) return {};
    if (dot == std::string::npos) return *option;
    const std::string first = within.substr(0, dot);
    return schema_of_option(within.substr(dot + 1),
                            value->contains(first) ? &(*value)[first] : nullptr, *option);
  }
  return {};
}

}  // namespace

Override parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse_form(text, "no '='");
  const std::string path = text.substr(0, equals);
  if (path.empty() || path.front() == '.' || path.back() == '.' ||
      path.find("..") != std::string::npos) {
    refuse_form(text, "an empty name in the key");
  }
  const auto names = 1 + std::count(path.begin(), path.end(), '.');
  if (names > kMostNames) {
    throw Error(ExitCode::usage, "--set " + abbreviate(text),
                "a key of at most " + std::to_string(kMostNames) + " names", std::to_string(names),
                "write it like train.steps=1000");
  }
  const std::string given = text.substr(equals + 1);
  return {path, parse_value(given, "--set " + abbreviate(text)), abbreviate(text), given};
}

Override meant_override(Override change, const json& document) {
  if (is_group(change.path) && change.value.is_string()) {
    for (const char* name : {".name", ".kind"}) {
      if (find_key(change.path + name) == nullptr) continue;
      change.path += name;
      return change;
    }
  }
  const Key* const key = find_owner(change.path);
  if (key == nullptr) return change;
  ValueSchema schema = key->schema;
  if (change.path != key->path) {
    const std::string within = change.path.substr(key->path.size() + 1);
    schema = key->names_mechanism
                 ? schema_of_option(within, find_value(document, key->path), schema)
                 : schema.value("additionalProperties", ValueSchema());
  }
  change.value = command_line_value(change.given, change.value, schema);
  return change;
}

std::string apply_override(json& document, const Override& change) {
  json* at = &document;
  std::istringstream names(change.path);
  std::string walked, name, created;
  while (std::getline(names, name, '.')) {
    if (!at->is_object()) {
      const Key* list = at->is_array() ? find_key(walked) : nullptr;
      const bool named = list != nullptr && list->names_mechanism;
      throw Error(ExitCode::config, "--set " + change.text,
                  "an object at \"" + walked + "\" to set \"" + name + "\" in", describe_value(*at),
                  "set \"" + walked + "\" as a whole" +
                      (named ? ": --set '" + walked + "=[{\"name\": ...}, ...]'" : ""));
    }
    walked += (walked.empty() ? "" : ".") + name;
    const bool absent = !at->contains(name);
    at = &(*at)[name];
    if (absent) *at = json::object();
    if (absent && created.empty()) created = walked;
  }
  *at = change.value;
  return created.empty() ? change.path : created;
}

}  // namespace bamtrain

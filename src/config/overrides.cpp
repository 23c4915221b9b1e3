#include "config/overrides.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

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
  return {path, parse_value(text.substr(equals + 1), "--set " + abbreviate(text)),
          abbreviate(text)};
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

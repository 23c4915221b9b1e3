#include "config/value_schema.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/join.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

/// The sign of value - limit.
int compare(const json& value, const json& limit) {
  if (value.is_number_integer() && limit.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return 1;
    const auto a = value.get<int64_t>(), b = limit.get<int64_t>();
    return (a > b) - (a < b);
  }
  const auto a = value.get<double>(), b = limit.get<double>();
  return (a > b) - (a < b);
}

bool has_type(const json& v, const std::string& type) {
  if (type == "boolean") return v.is_boolean();
  if (type == "integer") return is_whole(v);
  if (type == "number") return v.is_number();
  if (type == "string") return v.is_string();
  if (type == "array") return v.is_array();
  if (type == "object") return v.is_object();
  return v.is_null();
}

std::vector<std::string> types(const ValueSchema& s) {
  if (s.at("type").is_array()) return s.at("type").get<std::vector<std::string>>();
  return {s.at("type").get<std::string>()};
}

bool allows(const ValueSchema& s, const std::string& type) {
  for (const std::string& t : types(s)) {
    if (t == type) return true;
  }
  return false;
}

bool has_type_of(const json& v, const ValueSchema& s) {
  for (const std::string& t : types(s)) {
    if (has_type(v, t)) return true;
  }
  return false;
}

std::string quoted_choices(const ValueSchema& s) {
  std::vector<std::string> words;
  for (const auto& choice : s.at("enum")) words.push_back(choice.dump());
  return words.size() == 1 ? words[0] : "one of " + join(words);
}

bool is_choice(const std::string& word, const ValueSchema& s) {
  const auto& choices = s.at("enum");
  return std::find(choices.begin(), choices.end(), ValueSchema(word)) != choices.end();
}

/// Prints 0.0 as "0".
std::string number_text(const ValueSchema& number) {
  const std::string text = number.dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string describe_limits(const ValueSchema& s) {
  if (s.contains("minimum") && s.contains("maximum")) {
    return " from " + number_text(s["minimum"]) + " to " + number_text(s["maximum"]);
  }
  std::vector<std::string> parts;
  if (s.contains("minimum")) parts.push_back(" of at least " + number_text(s["minimum"]));
  if (s.contains("exclusiveMinimum"))
    parts.push_back(" above " + number_text(s["exclusiveMinimum"]));
  if (s.contains("maximum")) parts.push_back(" of at most " + number_text(s["maximum"]));
  if (s.contains("exclusiveMaximum"))
    parts.push_back(" below " + number_text(s["exclusiveMaximum"]));
  return join(parts, " and");
}

std::string describe_type(const ValueSchema& s, const std::string& type) {
  if (type == "boolean") return "true or false";
  if (type == "integer") return "an integer" + describe_limits(s);
  if (type == "number") return "a number" + describe_limits(s);
  if (type == "string") return s.contains("minLength") ? "a non-empty string" : "a string";
  if (type == "array") {
    const std::string length =
        s.contains("maxItems") ? " of length " + s["maxItems"].dump() : std::string();
    return "an array" + length + ", each element " + describe(s["items"]) +
           (s.contains("uniqueItems") ? ", no duplicates" : "");
  }
  if (type == "object") {
    if (s.contains("properties")) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : s["properties"].items()) names.push_back(name);
      return "an object with the keys " + join(names);
    }
    return "an object, each value " + describe(s["additionalProperties"]);
  }
  return "null";
}

/// The remedy for a `value` that should be a string. A shell removes quotes, so the form for --set
/// has quotes around them. `where` is Origin::at.
std::string remedy_for_string(const json& value, const std::string& where) {
  const std::string as_string = "write it as a string, in double quotes";
  const auto quoted = [](const std::string& text) { return "\"" + abbreviate(text) + "\""; };
  // A double does not record how it was written: 1e5 and 100000.0 are equal.
  const std::string remedy =
      value.is_number_float() ? as_string : as_string + ": " + quoted(value.dump());
  constexpr std::string_view kSet = "--set ";
  const size_t equals = where.find('=');
  if (!where.starts_with(kSet) || equals == std::string::npos) return remedy;
  const std::string given = where.substr(equals + 1);
  // Skip a value inside a larger one that was given whole, and an abbreviated text.
  if (given.find(": ") != std::string::npos || given.ends_with("...")) return remedy;
  const std::string text = quoted(given);
  return as_string + ": " + text + "; in a shell --set '" +
         where.substr(kSet.size(), equals + 1 - kSet.size()) + text + "'";
}

std::string remedy_for_type(const json& value, const ValueSchema& s, const std::string& where) {
  if (allows(s, "string") && value.is_primitive()) {
    const bool could_be = !s.contains("enum") || is_choice(value.dump(), s);
    return could_be ? remedy_for_string(value, where) : "";
  }
  if (value.is_string()) {
    const std::string remedy = remedy_for_text(value.get_ref<const std::string&>(), s);
    if (!remedy.empty()) return remedy;
  }
  if (allows(s, "integer")) return "write a whole number, without quotes";
  if (allows(s, "number")) return "write a number, without quotes";
  if (allows(s, "array")) return "write a list in brackets: [...]";
  if (s.contains("enum")) return "";
  if (allows(s, "boolean")) return "write true or false";
  if (allows(s, "string")) return "write one string, in double quotes";
  return allows(s, "object") ? "write an object in braces: {...}" : "";
}

[[noreturn]] void refuse(const json& value, const ValueSchema& schema, const std::string& where,
                         const std::string& remedy) {
  throw Error(ExitCode::config, where, describe(schema), describe_value(value), remedy);
}

void check_choice(const json& value, const ValueSchema& s, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& choice : s.at("enum")) {
    if (json(choice) == value) return;
    if (choice.is_string()) names.push_back(choice.get<std::string>());
  }
  if (!value.is_string()) refuse(value, s, where, remedy_for_type(value, s, where));
  throw unknown_name(ExitCode::config, where, "value", value.get<std::string>(), names);
}

void check_number(const json& value, const ValueSchema& s, const std::string& where) {
  const bool good =
      std::isfinite(value.get<double>()) &&
      (!s.contains("minimum") || compare(value, s["minimum"]) >= 0) &&
      (!s.contains("maximum") || compare(value, s["maximum"]) <= 0) &&
      (!s.contains("exclusiveMinimum") || compare(value, s["exclusiveMinimum"]) > 0) &&
      (!s.contains("exclusiveMaximum") || compare(value, s["exclusiveMaximum"]) < 0);
  if (!good) refuse(value, s, where, "");
}

/// The place of an element of a value: "run.json: model.bias[0]", where an override gave the whole
/// "--set model.bias=[\"mlps\"]: model.bias[0]".
std::string inside(const std::string& where, const std::string& element) {
  constexpr std::string_view kSet = "--set ";
  const size_t equals = where.find('=');
  if (!where.starts_with(kSet) || equals == std::string::npos ||
      where.find(": ", equals) != std::string::npos) {
    return where + element;
  }
  return where + ": " + where.substr(kSet.size(), equals - kSet.size()) + element;
}

void check_array(const json& value, const ValueSchema& s, const std::string& where) {
  if (s.contains("maxItems") && value.size() != s["maxItems"].get<size_t>()) {
    refuse(value, s, where, "write exactly " + s["maxItems"].dump() + " elements");
  }
  std::set<json> seen;
  for (size_t i = 0; i < value.size(); ++i) {
    check_value(value[i], s["items"], inside(where, "[" + std::to_string(i) + "]"));
    if (s.contains("uniqueItems") && !seen.insert(value[i]).second) {
      throw Error::fault(ExitCode::config, where,
                         "duplicate element " + abbreviate(value[i].dump()), "remove one of them");
    }
  }
}

}  // namespace

std::string remedy_for_text(const std::string& text, const ValueSchema& s) {
  const json meant = json::parse(text, nullptr, false);
  if (has_type_of(meant, s)) return "write it without the quotes";
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  const bool number = !text.empty() && *end == '\0' && std::isfinite(x);
  return number && meant.is_discarded() && has_type_of(x, s)
             ? "write it as JSON does: " + number_text(x)
             : "";
}

bool is_whole(const json& v) {
  if (v.is_number_integer()) return true;
  if (!v.is_number_float()) return false;
  const double x = v.get<double>();
  return std::abs(x) <= kExactIntegers && x == std::floor(x);
}

ValueSchema boolean_value() { return {{"type", "boolean"}}; }

ValueSchema integer_value(int64_t minimum, int64_t maximum) {
  return {{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}};
}

ValueSchema number_from(double minimum) { return {{"type", "number"}, {"minimum", minimum}}; }

ValueSchema number_above(double minimum) {
  return {{"type", "number"}, {"exclusiveMinimum", minimum}};
}

ValueSchema number_within(double minimum, double maximum) {
  return {{"type", "number"}, {"minimum", minimum}, {"maximum", maximum}};
}

ValueSchema number_in_range(double minimum, double maximum) {
  return {{"type", "number"}, {"minimum", minimum}, {"exclusiveMaximum", maximum}};
}

ValueSchema number_up_to(double minimum, double maximum) {
  return {{"type", "number"}, {"exclusiveMinimum", minimum}, {"maximum", maximum}};
}

ValueSchema any_text() { return {{"type", "string"}}; }

ValueSchema nonempty_text() { return {{"type", "string"}, {"minLength", 1}}; }

ValueSchema one_of(const std::vector<std::string>& names) {
  return {{"type", "string"}, {"enum", names}};
}

ValueSchema list_of(const ValueSchema& item) { return {{"type", "array"}, {"items", item}}; }

ValueSchema set_of(const ValueSchema& item) {
  return {{"type", "array"}, {"items", item}, {"uniqueItems", true}};
}

ValueSchema tuple_of(const ValueSchema& item, int length) {
  return {{"type", "array"}, {"items", item}, {"minItems", length}, {"maxItems", length}};
}

ValueSchema map_of(const ValueSchema& value) {
  return {{"type", "object"}, {"additionalProperties", value}};
}

ValueSchema or_null(ValueSchema schema) {
  schema["type"] = ValueSchema::array({schema["type"], "null"});
  return schema;
}

std::string describe(const ValueSchema& s) {
  if (s.contains("enum")) return quoted_choices(s);
  if (s.contains("oneOf")) {
    std::vector<std::string> alternatives;
    for (const ValueSchema& one : s["oneOf"]) alternatives.push_back(describe(one));
    return join(alternatives, " or ");
  }
  std::vector<std::string> parts;
  for (const std::string& type : types(s)) parts.push_back(describe_type(s, type));
  return join(parts, " or ");
}

std::string describe_value(const json& v) {
  const std::string text = abbreviate(v.dump());
  if (v.is_string()) return "the string " + text;
  if (v.is_number()) return "the number " + text;
  if (v.is_object()) return "the object " + text;
  if (v.is_array()) return "the array " + text;
  return text;
}

void check_value(const json& value, const ValueSchema& schema, const std::string& where) {
  if (!has_type_of(value, schema)) {
    // An integer beyond a double's exact range is out of range, not of the wrong type.
    const bool huge = allows(schema, "integer") && value.is_number_float() &&
                      std::abs(value.get<double>()) > kExactIntegers;
    refuse(value, schema, where, huge ? "" : remedy_for_type(value, schema, where));
  }
  if (schema.contains("enum")) return check_choice(value, schema, where);
  if (value.is_number()) check_number(value, schema, where);
  if (value.is_array()) check_array(value, schema, where);
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty() && schema.contains("minLength")) refuse(value, schema, where, "give a name");
    if (text.find('\0') != std::string::npos) {
      refuse(value, schema, where, "remove the NUL character");
    }
  }
  if (value.is_object()) {
    for (const auto& [name, element] : value.items()) {
      check_value(element, schema["additionalProperties"], inside(where, "." + abbreviate(name)));
    }
  }
}

}  // namespace bamtrain

#include "config/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "config/schema.h"
#include "core/join.h"

namespace bamtrain {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 100;

std::string names(const Json& values) {
  std::vector<std::string> parts;
  for (const Json& v : values) {
    parts.push_back(v.is_string() ? v.get<std::string>() : v.dump());
  }
  return join(parts, ", ");
}

std::string type_of(const Json& schema);

/// "name, or object with a name, or list of such".
std::string types_of(const Json& alternatives) {
  std::vector<std::string> kinds;
  for (const Json& a : alternatives) {
    std::string kind = type_of(a);
    if (a.contains("enum")) kind = "name";
    if (a.contains("enum") && a["enum"].size() == 1) kind = a["enum"][0].dump();
    if (a.contains("properties")) {
      kind = a["properties"].contains("task") ? "task" : "object with a name";
    }
    if (a.contains("items") && !a["items"].contains("enum")) {
      kind = a["items"].contains("oneOf") ? "list of such" : "list of objects";
    }
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return join(kinds, ", or ");
}

std::string type_of(const Json& schema) {
  if (schema.contains("enum")) return "one of " + names(schema["enum"]);
  if (schema.contains("oneOf")) return types_of(schema["oneOf"]);
  if (!schema.contains("type")) return "value";
  const Json& type = schema["type"];
  if (type == "array" && schema.contains("items")) {
    return "list, each " + type_of(schema["items"]);
  }
  if (type == "object") return "object";
  if (type.is_string()) return type.get<std::string>();
  std::vector<std::string> types;
  for (const Json& t : type) types.push_back(t.get<std::string>());
  return join(types, " or ");
}

/// "1 to 4,096", "above 0", "", ...: of numbers whose upper limit says something.
std::string limits_of(const Json& schema) {
  std::vector<std::string> parts;
  if (schema.contains("minimum")) parts.push_back("from " + schema["minimum"].dump());
  if (schema.contains("exclusiveMinimum")) {
    parts.push_back("above " + schema["exclusiveMinimum"].dump());
  }
  if (schema.contains("maximum")) parts.push_back("to " + schema["maximum"].dump());
  if (schema.contains("exclusiveMaximum")) {
    parts.push_back("below " + schema["exclusiveMaximum"].dump());
  }
  return join(parts, " ");
}

/// `text` in lines of at most kColumns, the first after `lead`, the others below its text.
void wrap(std::string& out, const std::string& lead, const std::string& text, size_t indent) {
  std::string line = lead;
  bool fresh = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!fresh && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  out += line + "\n";
}

void describe_key(std::string& out, const std::string& key, const Json& schema, bool required,
                  size_t depth) {
  std::vector<std::string> facts = {type_of(schema)};
  if (const std::string limits = limits_of(schema); !limits.empty()) facts.push_back(limits);
  if (required) facts.emplace_back("required");
  if (schema.contains("default")) facts.push_back("default `" + schema["default"].dump() + "`");
  if (schema.contains("$comment")) facts.push_back(schema["$comment"].get<std::string>());
  const std::string lead = std::string(2 * depth, ' ') + "- ";
  wrap(out, lead,
       fmt::format("`{}` ({}): {}", key, join(facts, "; "),
                   schema.value("description", std::string("a value"))),
       lead.size());
}

bool is_required(const Json& object, const std::string& key) {
  if (!object.contains("required")) return false;
  for (const Json& r : object["required"]) {
    if (r == key) return true;
  }
  return false;
}

void describe_members(std::string& out, const Json& object) {
  for (const auto& [key, schema] : object["properties"].items()) {
    if (!schema.contains("const")) describe_key(out, key, schema, is_required(object, key), 2);
  }
}

/// The mechanisms that a key can name, each with its options, and what a list holds.
void describe_alternatives(std::string& out, const Json& alternatives) {
  for (const Json& a : alternatives) {
    const std::string description = a.value("description", std::string());
    if (a.contains("properties")) {
      const Json& properties = a["properties"];
      const std::string lead =
          properties.contains("name")
              ? fmt::format("`{}`: ", properties["name"]["const"].get<std::string>())
              : "";
      wrap(out, "  - ", lead + description, 4);
      describe_members(out, a);
    } else if (a.contains("items") && !a["items"].contains("enum")) {
      wrap(out, "  - ", "a list: " + description, 4);
      const Json& items = a["items"];
      if (items.contains("properties")) describe_members(out, items);
      if (items.contains("oneOf") && items["oneOf"][0].contains("properties")) {
        describe_members(out, items["oneOf"][0]);
      }
    }
  }
}

void describe_object(std::string& out, const std::string& path, const Json& object) {
  // First the keys of this section, then the sections in it.
  for (const auto& [key, schema] : object["properties"].items()) {
    if (schema.contains("properties")) continue;
    const std::string full = path.empty() ? key : path + "." + key;
    describe_key(out, full, schema, is_required(object, key), 0);
    if (schema.contains("oneOf")) describe_alternatives(out, schema["oneOf"]);
    if (schema.contains("items") && schema["items"].contains("properties")) {
      describe_members(out, schema["items"]);
    }
  }
  for (const auto& [key, schema] : object["properties"].items()) {
    if (!schema.contains("properties")) continue;
    const std::string full = path.empty() ? key : path + "." + key;
    out += fmt::format("\n## {}: {}\n\n", full, schema.value("description", std::string()));
    describe_object(out, full, schema);
  }
}

}  // namespace

std::string config_reference() {
  std::string out = "# Config reference\n\n";
  wrap(
      out, "",
      "Every key of a run configuration. A file is one JSON object of these sections; "
      "`--set a.b.c=value` replaces a key on the command line. A key that is not listed here is an "
      "error.",
      0);
  out += "\n";
  describe_object(out, "", schema_json());
  return out;
}

}  // namespace bamtrain

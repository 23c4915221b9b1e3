#include "config/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "config/examples.h"
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
    const std::string each = type_of(schema["items"]);
    const bool plain = !schema["items"].contains("enum") && each.find(' ') == std::string::npos;
    return plain ? "list of " + each + "s" : "list, each " + each;
  }
  if (type == "object") return "object";
  if (type.is_string()) return type.get<std::string>();
  std::vector<std::string> types;
  for (const Json& t : type) types.push_back(t.get<std::string>());
  return join(types, " or ");
}

// An upper limit from here on only catches typos.
constexpr double kBeyondUse = 1e9;

std::string limit_text(const Json& number) {
  return number.is_number_float() ? fmt::format("{:g}", number.get<double>()) : number.dump();
}

/// "from 1 to 4096", "above 0", "", ...: omits an upper limit that is beyond any use.
std::string limits_of(const Json& schema) {
  std::vector<std::string> parts;
  const auto add = [&](const char* keyword, const char* word) {
    if (schema.contains(keyword)) parts.push_back(word + limit_text(schema[keyword]));
  };
  add("minimum", "from ");
  add("exclusiveMinimum", "above ");
  if (schema.contains("maximum") && schema["maximum"].get<double>() < kBeyondUse) {
    add("maximum", "to ");
  }
  add("exclusiveMaximum", "below ");
  return join(parts, " ");
}

/// Wraps `text` to lines of at most kColumns, the first after `lead`, the others indented.
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

/// Members already described, by name and schema, and where.
using Seen = std::map<std::string, std::string>;

bool is_required(const Json& object, const std::string& key) {
  if (!object.contains("required")) return false;
  for (const Json& r : object["required"]) {
    if (r == key) return true;
  }
  return false;
}

/// Describes the members of an object at `where`; refers to those described elsewhere by name.
void describe_members(std::string& out, const Json& object, const std::string& where, Seen& seen) {
  std::vector<std::pair<std::string, std::vector<std::string>>> repeated;  // by first place
  for (const auto& [key, schema] : object["properties"].items()) {
    if (schema.contains("const")) continue;
    const auto [first, is_new] = seen.emplace(key + schema.dump(), where);
    if (is_new || is_required(object, key)) {
      describe_key(out, key, schema, is_required(object, key), 2);
      continue;
    }
    if (repeated.empty() || repeated.back().first != first->second) {
      repeated.push_back({first->second, {}});
    }
    repeated.back().second.push_back("`" + key + "`");
  }
  for (const auto& [other, keys] : repeated) {
    wrap(out, "    - ", join(keys) + ": as for `" + other + "`", 6);
  }
}

/// Describes the mechanisms that a key can name with their options, and the entries of a list.
void describe_alternatives(std::string& out, const std::string& path, const Json& alternatives,
                           Seen& seen) {
  for (const Json& a : alternatives) {
    const std::string description = a.value("description", std::string());
    if (a.contains("properties")) {
      const Json& properties = a["properties"];
      const std::string name = properties.contains("name")
                                   ? properties["name"]["const"].get<std::string>()
                                   : std::string();
      const auto [first, is_new] = seen.emplace(a.dump(), path);
      if (!is_new) {
        wrap(out, "  - ", description + ": as for `" + first->second + "`", 4);
        continue;
      }
      wrap(out, "  - ", (name.empty() ? "" : "`" + name + "`: ") + description, 4);
      describe_members(out, a, name.empty() ? path : name, seen);
    } else if (a.contains("items") && !a["items"].contains("enum")) {
      wrap(out, "  - ", "a list: " + description, 4);
      const Json& items = a["items"];
      if (items.contains("properties")) describe_members(out, items, path, seen);
      if (items.contains("oneOf") && items["oneOf"][0].contains("properties")) {
        describe_members(out, items["oneOf"][0], path, seen);
      }
    }
  }
}

/// A JSON text as an indented block.
std::string block_of(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += "    " + line + "\n";
  return out;
}

void describe_object(std::string& out, const std::string& path, const Json& object, Seen& seen) {
  // First the keys of this section, then the sections in it.
  for (const auto& [key, schema] : object["properties"].items()) {
    if (schema.contains("properties")) continue;
    const std::string full = path.empty() ? key : path + "." + key;
    describe_key(out, full, schema, is_required(object, key), 0);
    if (schema.contains("oneOf")) describe_alternatives(out, full, schema["oneOf"], seen);
    if (schema.contains("items") && schema["items"].contains("properties")) {
      describe_members(out, schema["items"], full, seen);
    }
  }
  for (const auto& [key, schema] : object["properties"].items()) {
    if (!schema.contains("properties")) continue;
    const std::string full = path.empty() ? key : path + "." + key;
    out += fmt::format("\n## {}: {}\n\n", full, schema.value("description", std::string()));
    out += block_of(config_example(full)) + "\n";
    describe_object(out, full, schema, seen);
  }
}

}  // namespace

std::string config_reference() {
  std::string out = "# Config reference\n\n";
  const auto paragraph = [&out](const std::string& text) {
    wrap(out, "", text, 0);
    out += "\n";
  };
  paragraph(
      "A run is one JSON file. This one trains a small model with BAM + SSMax on the data of "
      "`scripts/quickstart.sh`, and measures perplexity up to 8 times the training length. Save it "
      "as `run.json`:");
  out += block_of(minimal_config()) + "\n";
  out +=
      "    build/src/bamtrain --config run.json --dry-run     # checks config, data and memory\n"
      "    build/src/bamtrain --config run.json\n\n";
  out +=
      "| key | meaning |\n|---|---|\n"
      "| `config_version` | the version that this page describes |\n"
      "| `out_dir` | checkpoints, logs and results; run the same command again to resume |\n"
      "| `vocab` | the size of the tokenizer's vocabulary |\n"
      "| `width`, `layers`, `heads`, `mlp.hidden` | the size of the model |\n"
      "| `prior`, `scale` | the attention that is compared; a name stands for its defaults |\n"
      "| `train`, `val` | folders of token shards, or a synthetic task: `{\"task\": \"copy\"}` |\n"
      "| `sequence_length` | the training length T |\n"
      "| `steps`, `tokens_per_step` | the training budget |\n"
      "| `micro_batch` | sequences per forward and backward pass: less takes less memory |\n"
      "| `lengths` | where perplexity is measured at the end |\n\n";
  paragraph(
      "Leave the other keys at their defaults. Most of them reproduce a paper: `configs/` has "
      "complete files for each paper.");
  paragraph(
      "Each entry below gives type, limits and default in parentheses. `--set a.b.c=value` "
      "replaces a key on the "
      "command line. A key that is not listed here is an error. A key may change on resume where "
      "its entry says so; `checkpoint.allow_change` permits others.");
  out += "## Top level\n\n" + block_of(config_example("")) + "\n";
  Seen seen;
  describe_object(out, "", schema_json(), seen);
  return out;
}

}  // namespace bamtrain

#include "config/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "config/examples.h"
#include "config/keys.h"
#include "config/option.h"
#include "config/schema.h"
#include "core/join.h"
#include "core/wrap.h"
#include "mixes/registry.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "tasks/registry.h"
#include "tasks/text_task.h"

namespace bamtrain {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPageColumns = 100;

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

bool is_required(const Json& object, const std::string& key) {
  if (!object.contains("required")) return false;
  for (const Json& r : object["required"]) {
    if (r == key) return true;
  }
  return false;
}

/// The mechanism's name in an object of it; "" for an object of another kind.
std::string mechanism_of(const Json& object) {
  if (!object.contains("properties") || !object["properties"].contains("name")) return "";
  const Json& name = object["properties"]["name"];
  return name.contains("const") ? name["const"].get<std::string>() : "";
}

/// Describes keys in Markdown.
class Description {
 public:
  explicit Description(size_t columns) : columns_(columns) {}

  std::string take() { return std::move(out_); }

  void text(const std::string& lead, const std::string& words, size_t indent) {
    out_ += wrapped(lead, words, indent, columns_);
  }
  void line(const std::string& words) { out_ += words + "\n"; }

  void key(const std::string& key, const Json& schema, bool required, size_t depth) {
    std::vector<std::string> facts = {type_of(schema)};
    if (const std::string limits = limits_of(schema); !limits.empty()) facts.push_back(limits);
    if (required) facts.emplace_back("required");
    if (schema.contains("default")) facts.push_back("default `" + schema["default"].dump() + "`");
    if (schema.contains("$comment")) facts.push_back(schema["$comment"].get<std::string>());
    const std::string lead = std::string(2 * depth, ' ') + "- ";
    text(lead,
         fmt::format("`{}` ({}): {}", key, join(facts, "; "),
                     schema.value("description", std::string("a value"))),
         lead.size());
  }

  void members(const Json& object, size_t depth) {
    for (const auto& [name, schema] : object["properties"].items()) {
      if (!schema.contains("const")) key(name, schema, is_required(object, name), depth);
    }
  }

  /// Describes the key, the mechanisms that it can name with their options, and a list's entries.
  void whole_key(const std::string& path, const Json& schema) {
    const Key* const of_table = find_key(path);
    key(path, schema, of_table != nullptr && of_table->required, 0);
    if (schema.contains("oneOf")) alternatives(path, schema["oneOf"]);
    if (schema.contains("items") && schema["items"].contains("properties")) {
      new_members(schema["items"], path);
    }
  }

  /// First the keys of this section, then the sections in it.
  void section(const std::string& path, const Json& object) {
    for (const auto& [name, schema] : object["properties"].items()) {
      if (schema.contains("properties")) continue;
      whole_key(path_of(path, name), schema);
    }
    for (const auto& [name, schema] : object["properties"].items()) {
      if (!schema.contains("properties")) continue;
      const std::string full = path_of(path, name);
      line("");
      heading(full, schema);
      section(full, schema);
    }
  }

  void heading(const std::string& path, const Json& schema) {
    line(fmt::format("## {}: {}\n", path, schema.value("description", std::string())));
    block(config_example(path));
  }

  /// A JSON text as an indented block.
  void block(const std::string& text) {
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) line("    " + each);
    line("");
  }

  static std::string path_of(const std::string& group, const std::string& name) {
    return group.empty() ? name : group + "." + name;
  }

 private:
  void alternatives(const std::string& path, const Json& list) {
    for (const Json& a : list) {
      const std::string description = a.value("description", std::string());
      if (a.contains("properties")) {
        const std::string name = mechanism_of(a);
        const auto [first, is_new] = seen_.emplace(a.dump(), path);
        if (!is_new) {
          text("  - ", description + ": as for `" + first->second + "`", 4);
          continue;
        }
        text("  - ", (name.empty() ? "" : "`" + name + "`: ") + description, 4);
        new_members(a, name.empty() ? path : name);
      } else if (a.contains("items") && !a["items"].contains("enum")) {
        text("  - ", "a list: " + description, 4);
        const Json& items = a["items"];
        if (items.contains("properties")) new_members(items, path);
        if (items.contains("oneOf") && items["oneOf"][0].contains("properties")) {
          new_members(items["oneOf"][0], path);
        }
      }
    }
  }

  /// Describes the members of an object at `where`; refers to those described elsewhere by name.
  void new_members(const Json& object, const std::string& where) {
    std::vector<std::pair<std::string, std::vector<std::string>>> repeated;  // by first place
    for (const auto& [name, schema] : object["properties"].items()) {
      if (schema.contains("const")) continue;
      const auto [first, is_new] = seen_.emplace(name + schema.dump(), where);
      if (is_new || is_required(object, name)) {
        key(name, schema, is_required(object, name), 2);
        continue;
      }
      if (repeated.empty() || repeated.back().first != first->second) {
        repeated.push_back({first->second, {}});
      }
      repeated.back().second.push_back("`" + name + "`");
    }
    for (const auto& [other, keys] : repeated) {
      text("    - ", join(keys) + ": as for `" + other + "`", 6);
    }
  }

  size_t columns_;
  std::string out_;
  std::map<std::string, std::string> seen_;  // members, by name and schema, and where
};

/// An option `name` of what the key at `path` can be: one entry for each mechanism that has it.
void describe_option(const std::string& path, const Json& schema, const std::string& name,
                     Description* out) {
  if (schema.contains("oneOf")) {
    for (const Json& a : schema["oneOf"]) describe_option(path, a, name, out);
  }
  if (schema.contains("items") && schema["items"].contains("properties")) {
    describe_option(path + "[...]", schema["items"], name, out);
  }
  if (!schema.contains("properties") || !schema["properties"].contains(name)) return;
  const Json& properties = schema["properties"];
  if (properties[name].contains("const")) return;
  if (const std::string mechanism = mechanism_of(schema); !mechanism.empty()) {
    out->line("With " + mechanism + ":");
  }
  out->key(path + "." + name, properties[name], is_required(schema, name), 0);
}

/// The alternatives of a key that name a mechanism, by that name.
const Json* mechanism_at(const Json& schema, const std::string& name) {
  if (!schema.contains("oneOf")) return nullptr;
  for (const Json& a : schema["oneOf"]) {
    if (mechanism_of(a) == name) return &a;
  }
  return nullptr;
}

struct MechanismKey {
  const char *path, *kind;
};
constexpr MechanismKey kMechanismKeys[] = {
    {"model.attention.prior", "positional encoding or bias (prior)"},
    {"model.attention.scale", "logit temperature (scale)"},
    {"model.attention.normalizer", "softmax or an alternative (normalizer)"}};

const Json& attention_of(const Json& schema) {
  return schema["properties"]["model"]["properties"]["attention"]["properties"];
}

void describe_mechanism(const MechanismKey& at, const Json& mechanism, const std::string& name,
                        Description* out) {
  const bool mix = find_mix(name) != nullptr;
  out->line(fmt::format("# {}: {}\n", name, mix ? "mix of heads, over a prior" : at.kind));
  out->text("", mechanism.value("description", std::string()), 0);
  const std::string key = at.path;
  out->line("");
  out->text(
      "",
      fmt::format("Choose it by --set {}={}, or in a file by {{\"name\": \"{}\", OPTION: VALUE, "
                  "...}} at {}.",
                  key, name, name, key),
      0);
  if (mechanism["properties"].size() <= 1) return out->line("\nIt has no options.");
  out->line(fmt::format("\nOptions (--set {}.OPTION=VALUE):\n", key));
  out->members(mechanism, 0);
}

void describe_options(const std::vector<OptionSpec>& options, Description* out) {
  if (options.empty()) return out->line("\nIt has no options.");
  out->line("\nOptions:\n");
  for (const OptionSpec& o : options) {
    out->key(o.name, Json(option_schema(o)), false, 0);
  }
}

void describe_task(const TaskInfo& task, Description* out) {
  out->line(fmt::format("# {}: task to train on\n", task.name));
  out->text("", task.description, 0);
  out->line("");
  std::string use =
      fmt::format("Train on it with {{\"task\": \"{}\", ...}} in data.train, ", task.name);
  use += task.of_file ? "validate on it with data.val."
                      : "and measure it with eval.tasks or bamtrain "
                        "eval --task. bamdata synth prints its sequences.";
  out->text("", use + " See bamtrain help tasks.", 0);
  describe_options(task.options, out);
}

void describe_text_task(const TextTaskInfo& task, Description* out) {
  out->line(fmt::format("# {}: task on text, to measure\n", task.name));
  out->text("", task.description, 0);
  out->line("");
  out->text(
      "",
      fmt::format("Measure it with {{\"task\": \"{}\", ...}} in eval.tasks, or with bamtrain eval "
                  "--task {} --task-set OPTION=VALUE. See bamtrain help {}.",
                  task.name, task.name, task.of_lengths ? "retrieval" : "downstream"),
      0);
  describe_options(task.options, out);
}

std::vector<const TaskInfo*> trained_tasks() {
  std::vector<const TaskInfo*> out;
  for (const TaskInfo& t : all_tasks()) out.push_back(&t);
  out.insert(out.end(), tasks_of_files().begin(), tasks_of_files().end());
  return out;
}

}  // namespace

std::string config_reference() {
  Description out(kPageColumns);
  const auto paragraph = [&out](const std::string& text) {
    out.text("", text, 0);
    out.line("");
  };
  out.line("# Config reference\n");
  paragraph(
      "A run is one JSON file. This one trains a small model with BAM + SSMax on the data of "
      "`scripts/quickstart.sh`, and measures perplexity up to 8 times the training length. Save it "
      "as `run.json`:");
  out.block(minimal_config());
  out.line(
      "    build/src/bamtrain train run.json --dry-run        # checks config, data and memory\n"
      "    build/src/bamtrain train run.json --print-config   # every key with its value\n"
      "    build/src/bamtrain train run.json\n");
  out.line(
      "| key | meaning |\n|---|---|\n"
      "| `config_version` | the version that this page describes, and the default |\n"
      "| `out_dir` | checkpoints, logs and results; run the same command again to resume |\n"
      "| `vocab` | the size of the tokenizer's vocabulary |\n"
      "| `width`, `layers`, `heads`, `mlp.hidden` | the size of the model |\n"
      "| `prior`, `scale` | the attention that is compared; a name stands for its defaults |\n"
      "| `train`, `val` | folders of token shards, or a synthetic task: `{\"task\": \"copy\"}` |\n"
      "| `sequence_length` | the training length T |\n"
      "| `steps`, `tokens_per_step` | the training budget |\n"
      "| `micro_batch` | sequences per forward and backward pass: less takes less memory |\n"
      "| `lengths` | where perplexity is measured at the end |\n");
  paragraph(
      "Leave the other keys at their defaults. Most of them reproduce a paper: `configs/` has "
      "complete files for each paper.");
  out.line("## Variants of a run\n");
  out.block(
      "{\n  \"base\": \"run.json\",\n  \"name\": \"rope\",\n  \"out_dir\": \"out/rope\",\n"
      "  \"model\": {\"attention\": {\"prior\": \"rope\"}}\n}\n");
  paragraph(
      "A file with a `base` has that file's keys where it has none of its own, but for `name` and "
      "`out_dir`. The path is relative to the file's folder. Objects are merged key by key; lists "
      "and mechanisms replace the base's. The base's `config_version` holds. A base may have a "
      "base, up to 8 files. Checkpoints and `out_dir/config.json` hold the merged configuration.");
  paragraph(
      "`--set a.b.c=value` replaces a key on the command line, and takes several: `--set seed=2 "
      "name=second`. There, lists of numbers or names need no brackets (`eval.lengths=64,128`), "
      "`model.norm=layernorm` is short for `model.norm.kind=layernorm`, and `True` and `1_000` are "
      "understood. Files hold JSON alone.");
  paragraph(
      "Each entry below gives type, limits and default in parentheses. A key that is not listed "
      "here is an error. A key may change on resume where "
      "its entry says so; `checkpoint.allow_change` permits others.");
  out.line("## Top level\n");
  out.block(config_example(""));
  out.section("", schema_json());
  return out.take();
}

std::vector<std::string> config_paths() {
  std::vector<std::string> out;
  for (const KeyGroup& g : all_groups()) out.push_back(g.path);
  for (const Key& k : all_keys()) out.push_back(k.path);
  return out;
}

std::string config_entry(const std::string& path) {
  Description out(kTerminalColumns);
  const Json schema = schema_json();
  const Json* at = &schema;
  std::istringstream names(path);
  std::string name, walked;
  while (std::getline(names, name, '.')) {
    const bool of_section = at->contains("properties");
    if (of_section && !(*at)["properties"].contains(name)) return "";
    if (!of_section) {
      std::string rest;
      if (std::getline(names, rest)) return "";  // no option has members
      describe_option(walked, *at, name, &out);
      return out.take();
    }
    at = &(*at)["properties"][name];
    walked = Description::path_of(walked, name);
  }
  if (walked.empty()) return "";
  if (at->contains("properties")) {
    out.heading(path, *at);
    out.section(path, *at);
  } else {
    out.whole_key(path, *at);
  }
  return out.take();
}

std::vector<std::pair<std::string, std::vector<std::string>>> mechanisms_by_kind() {
  const auto names_of = [](const auto& all) {
    std::vector<std::string> names;
    for (const auto& info : all) names.push_back(info.name);
    return names;
  };
  return {{"prior", names_of(all_priors())},
          {"mix", names_of(all_mixes())},
          {"scale", names_of(all_scales())},
          {"normalizer", names_of(all_normalizers())}};
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> out;
  for (const auto& [kind, names] : mechanisms_by_kind()) {
    for (const std::string& name : names) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

std::vector<std::string> every_task_name() {
  std::vector<std::string> out;
  for (const TaskInfo* t : trained_tasks()) out.push_back(t->name);
  for (const std::string& name : text_task_names()) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string mechanism_page(const std::string& name) {
  Description out(kTerminalColumns);
  const Json schema = schema_json();
  bool any = false;
  const auto begin = [&] {
    if (any) out.line("");
    any = true;
  };
  for (const MechanismKey& key : kMechanismKeys) {
    const std::string path = key.path;
    const Json* const found =
        mechanism_at(attention_of(schema)[path.substr(path.rfind('.') + 1)], name);
    if (found == nullptr) continue;
    begin();
    describe_mechanism(key, *found, name, &out);
  }
  for (const TaskInfo* t : trained_tasks()) {
    if (t->name != name) continue;
    begin();
    describe_task(*t, &out);
  }
  if (const TextTaskInfo* const t = find_text_task(name)) {
    begin();
    describe_text_task(*t, &out);
  }
  return out.take();
}

}  // namespace bamtrain

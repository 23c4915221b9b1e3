#include "config/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/keys.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

std::string member_path(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "." + name;
}

ordered_json key_schema(const Key& key, const RunConfig& defaults) {
  ordered_json s = {{"description", key.description}};
  for (const auto& [keyword, value] : key.schema.items()) s[keyword] = value;
  if (!key.required) s["default"] = key.get(defaults);
  if (key.free_on_resume) s["$comment"] = "may change on resume";
  return s;
}

/// Whether a group contains a required key, which makes the group itself required.
bool is_required_key(const std::string& path) {
  return std::any_of(all_keys().begin(), all_keys().end(),
                     [&path](const Key& k) { return k.required && lies_in(k.path, path); });
}

/// What a group must have where no base has it.
ordered_json required_in(const std::string& group) {
  ordered_json s = {{"required", ordered_json::array()}};
  for (const std::string& name : members(group)) {
    const std::string path = member_path(group, name);
    if (!is_required_key(path)) continue;
    s["required"].push_back(name);
    if (find_key(path) == nullptr) s["properties"][name] = required_in(path);
  }
  return s;
}

ordered_json group_schema(const std::string& group, const RunConfig& defaults) {
  ordered_json properties = ordered_json::object();
  for (const std::string& name : members(group)) {
    const std::string path = member_path(group, name);
    const Key* key = find_key(path);
    properties[name] = key != nullptr ? key_schema(*key, defaults) : group_schema(path, defaults);
  }
  ordered_json s = ordered_json::object();
  for (const KeyGroup& g : all_groups()) {
    if (g.path == group) s["description"] = g.description;
  }
  s["type"] = "object";
  s["properties"] = properties;
  s["additionalProperties"] = false;
  return s;
}

}  // namespace

ordered_json schema_json() {
  ordered_json s = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "bamtrain run configuration"}};
  s.update(group_schema("", default_run_config(kConfigVersion)));
  ordered_json properties = {
      {"$schema",
       {{"description", "where editors find this schema, the output of --print-schema"},
        {"type", "string"}}},
      {"base",
       {{"description",
         "another configuration, relative to this file's folder: its keys hold where this file has "
         "none, but for name and out_dir"},
        {"type", "string"},
        {"minLength", 1}}}};
  properties.update(s["properties"]);
  s["properties"] = properties;
  s["if"] = {{"required", {"base"}}};
  s["then"] = {{"required", {"out_dir"}}};
  s["else"] = required_in("");
  return s;
}

}  // namespace bamtrain

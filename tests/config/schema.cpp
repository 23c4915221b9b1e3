// Checks the schema with a small validator written for this test, on configs that the reader
// accepts and on configs that it refuses.

#include "config/schema.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fixture.h"
#include "priors/registry.h"
#include "scales/registry.h"

using bamtrain::resolved_json;
using nlohmann::json;

namespace {

bool conforms(const json& value, const json& schema);

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
  }
  if (type == "number") return value.is_number();
  return type == (value.is_boolean() ? "boolean" : value.type_name());
}

bool conforms_object(const json& value, const json& schema) {
  const json properties = schema.value("properties", json::object());
  for (const auto& name : schema.value("required", json::array())) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  for (const auto& [name, member] : value.items()) {
    if (properties.contains(name)) {
      if (!conforms(member, properties[name])) return false;
    } else if (schema.contains("additionalProperties")) {
      const json& rule = schema["additionalProperties"];
      if (rule.is_boolean() ? !rule.get<bool>() : !conforms(member, rule)) return false;
    }
  }
  return true;
}

bool conforms(const json& value, const json& schema) {
  for (const auto& [keyword, rule] : schema.items()) {
    bool good = true;
    if (keyword == "type") {
      const json types = rule.is_array() ? rule : json::array({rule});
      good = std::any_of(types.begin(), types.end(),
                         [&value](const json& t) { return has_type(value, t.get<std::string>()); });
    } else if (keyword == "enum") {
      good = std::find(rule.begin(), rule.end(), value) != rule.end();
    } else if (keyword == "const") {
      good = value == rule;
    } else if (keyword == "oneOf") {
      good = 1 == std::count_if(rule.begin(), rule.end(),
                                [&value](const json& s) { return conforms(value, s); });
    } else if (keyword == "if") {
      const char* const branch = conforms(value, rule) ? "then" : "else";
      good = !schema.contains(branch) || conforms(value, schema[branch]);
    } else if (keyword == "then" || keyword == "else") {
      continue;  // by "if"
    } else if (keyword == "minimum") {
      good = !value.is_number() || value >= rule;
    } else if (keyword == "maximum") {
      good = !value.is_number() || value <= rule;
    } else if (keyword == "exclusiveMinimum") {
      good = !value.is_number() || value > rule;
    } else if (keyword == "exclusiveMaximum") {
      good = !value.is_number() || value < rule;
    } else if (keyword == "minLength") {
      good = !value.is_string() || value.get<std::string>().size() >= rule.get<size_t>();
    } else if (keyword == "minItems") {
      good = !value.is_array() || value.size() >= rule.get<size_t>();
    } else if (keyword == "maxItems") {
      good = !value.is_array() || value.size() <= rule.get<size_t>();
    } else if (keyword == "uniqueItems") {
      good = !value.is_array() || std::set<json>(value.begin(), value.end()).size() == value.size();
    } else if (keyword == "items") {
      good =
          !value.is_array() || std::all_of(value.begin(), value.end(),
                                           [&r = rule](const json& v) { return conforms(v, r); });
    } else if (keyword == "properties" || keyword == "required" ||
               keyword == "additionalProperties") {
      good = !value.is_object() || conforms_object(value, schema);
    } else {
      static const std::set<std::string> annotations = {"$schema", "title", "description",
                                                        "default", "$comment"};
      INFO("keyword " << keyword);
      REQUIRE(annotations.count(keyword) == 1);
    }
    if (!good) return false;
  }
  return true;
}

/// kValid with one --set applied, and no defaults filled in.
json document_with(const std::string& path, const json& value) {
  json document = json::parse(kValid);
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  document[json::json_pointer(pointer)] = value;
  return document;
}

void check_described(const json& schema, const std::string& path) {
  INFO(path);
  if (!path.empty()) CHECK(!schema.value("description", "").empty());
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) {
    check_described(property, path + "/" + name);
  }
}

/// Checks that the schema's members at `path` are those of the resolved config, object by object,
/// plus "$schema" and "base", which no resolved config has.
void check_same_members(const json& schema, const json& resolved, const std::string& path) {
  INFO(path);
  REQUIRE(schema["type"] == "object");
  CHECK(schema["additionalProperties"] == false);
  std::set<std::string> described, written;
  for (const auto& [name, unused] : schema["properties"].items()) described.insert(name);
  for (const auto& [name, unused] : resolved.items()) written.insert(name);
  for (const char* of_file : {"$schema", "base"}) {
    CHECK(described.erase(of_file) == (path.empty() ? 1 : 0));
  }
  CHECK(described == written);
  for (const auto& [name, property] : schema["properties"].items()) {
    if (property.contains("properties")) {
      check_same_members(property, resolved.at(name), path + "/" + name);
    }
  }
}

}  // namespace

TEST_CASE("the schema names its draft and describes every key") {
  const json s = bamtrain::schema_json();
  CHECK(s["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  check_described(s, "");
}

TEST_CASE("the schema has the members of a resolved configuration, no more and no fewer") {
  check_same_members(bamtrain::schema_json(), resolved_json(valid_with({})), "");
}

TEST_CASE("resolved and shipped configurations conform to the schema") {
  const json s = bamtrain::schema_json();
  CHECK(conforms(json::parse(kValid), s));
  for (const bamtrain::PriorInfo& prior : bamtrain::all_priors()) {
    for (const bamtrain::ScaleInfo& scale : bamtrain::all_scales()) {
      INFO(prior.name << " " << scale.name);
      CHECK(conforms(resolved_json(valid_with({"model.attention.prior=" + prior.name,
                                               "model.attention.scale=" + scale.name},
                                              bamtrain::ConfigUse::evaluation)),
                     s));
    }
  }
  for (const auto& file : shipped_configs()) {
    INFO(file.string());
    CHECK(conforms(json::parse(std::ifstream(file)), s));
    CHECK(conforms(resolved_json(bamtrain::read_run_config(file.string(), {})), s));
  }
}

TEST_CASE("a default in the schema is what the reader fills in") {
  const json s = bamtrain::schema_json(), resolved = resolved_json(valid_with({}));
  CHECK(s["properties"]["optimizer"]["properties"]["lr"]["default"] == 1e-3);
  CHECK(s["properties"]["optimizer"]["properties"]["betas"]["default"] == json({0.9, 0.95}));
  for (const char* group : {"optimizer", "schedule", "checkpoint", "eval", "log"}) {
    for (const auto& [name, property] : s["properties"][group]["properties"].items()) {
      INFO(group << "." << name);
      if (!property.contains("properties")) CHECK(property["default"] == resolved[group][name]);
    }
  }
  for (const auto& [name, property] :
       s["properties"]["checkpoint"]["properties"]["best"]["properties"].items()) {
    INFO(name);
    CHECK(property["default"] == resolved["checkpoint"]["best"][name]);
  }
  CHECK_FALSE(s["properties"]["model"]["properties"]["width"].contains("default"));
}

TEST_CASE("required keys and the groups that hold them are required in the schema") {
  const json s = bamtrain::schema_json();
  const json& whole = s["else"];
  CHECK(s["if"] == json({{"required", {"base"}}}));
  CHECK(s["then"] == json({{"required", {"out_dir"}}}));
  CHECK(whole["required"] == json({"out_dir", "model", "data", "train"}));
  CHECK(whole["properties"]["model"]["required"] == json({"width", "layers", "heads", "mlp"}));
  CHECK(whole["properties"]["model"]["properties"]["mlp"]["required"] == json({"hidden"}));
  CHECK_FALSE(whole["properties"].contains("optimizer"));
}

TEST_CASE("schema and reader refuse the same values") {
  const json s = bamtrain::schema_json();
  const std::vector<json> values = {nullptr,
                                    true,
                                    0,
                                    1,
                                    -1,
                                    2.5,
                                    1e300,
                                    "",
                                    "cpu",
                                    "radam",
                                    "rope",
                                    "ssmax",
                                    json::array({"rope", "nope"}),
                                    json::array({"rope", {{"name", "nope"}}}),
                                    json::array({"rope", "learned"}),
                                    json::array(),
                                    {16},
                                    {0.9, 0.95},
                                    json::array({"seed"}),
                                    json::object(),
                                    json({{"name", "rope"}}),
                                    json({{"name", "rope"}, {"theta", 0}}),
                                    json({{"name", "ssmax"}, {"offset", 1}}),
                                    {16, 16},
                                    {1.0, 0.5},
                                    json::array({{{"name", "rope"}}, {{"name", "nope"}}}),
                                    json::array({{{"name", "rope"}}, {{"name", "learned"}}}),
                                    json::array({json::array({{{"name", "rope"}}})})};
  int accepted = 0, refused = 0;
  const auto visit = [&](const auto& self, const json& schema, const std::string& path) -> void {
    for (const auto& [name, property] : schema["properties"].items()) {
      const std::string key = path.empty() ? name : path + "." + name;
      if (key == "base") continue;  // of files alone
      if (property.contains("properties")) self(self, property, key);
      for (const json& value : values) {
        const json document = document_with(key, value);
        INFO(key << " = " << value.dump());
        const std::string what = message(document.dump());
        INFO(what);
        if (conforms(document, s)) {
          // What conforms to the schema is refused only for a relation between keys.
          const bool relation =
              what.empty() || what.find("expected a divisor") != std::string::npos ||
              what.find("expected a multiple") != std::string::npos ||
              what.find("expected at most") != std::string::npos ||
              what.find("unless schedule.name") != std::string::npos ||
              what.find("wsd schedule") != std::string::npos ||
              what.find("0 or ") != std::string::npos ||
              what.find("expected 0 with shards in data.train") != std::string::npos ||
              what.find("without init_from.folder") != std::string::npos ||
              what.find("for the validation that eval asks for") != std::string::npos ||
              what.find("known keys or groups") != std::string::npos ||
              what.find("only synthetic tasks in data.train set it") != std::string::npos ||
              what.find("without eval.lengths") != std::string::npos ||
              what.find("sequences_per_step in its place") != std::string::npos ||
              what.find("a metric measured while training") != std::string::npos ||
              what.find("a prompt, since") != std::string::npos;
          CHECK(relation);
          accepted += what.empty();
        } else {
          CHECK(!what.empty());
          ++refused;
        }
      }
    }
  };
  visit(visit, s, "");
  CHECK(accepted > 50);
  CHECK(refused > 500);
}

TEST_CASE("$schema, by which editors find the schema, is a string at the top and says nothing") {
  json document = json::parse(kValid);
  document["$schema"] = "../schema.json";
  CHECK(conforms(document, bamtrain::schema_json()));
  const bamtrain::RunConfig config = bamtrain::read_run_config_text(document.dump(), "file", {});
  CHECK(resolved_json(config) == resolved_json(valid_with({})));
  document["$schema"] = 7;
  check_mentions(message(document.dump()), {"$schema", "a string", "7"});
  document.erase("$schema");
  document["model"]["$schema"] = "../schema.json";
  check_mentions(message(document.dump()), {"model.$schema", "unknown key"});
  check_mentions(message(kValid, {"$schema=schema.json"}), {"$schema", "unknown key"});
}

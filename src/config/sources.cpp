#include "config/sources.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/task.h"
#include "core/abbreviate.h"
#include "core/error.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ValueSchema weight_schema() { return number_above(0); }

}  // namespace

ValueSchema sources_schema() {
  ValueSchema path = nonempty_text(), weight = weight_schema();
  path["description"] = "a folder of *.bin, or a glob";
  weight["description"] = "relative share of the sequences";
  const ValueSchema shards = {{"type", "object"},
                              {"description", "shards"},
                              {"properties", {{"path", path}, {"weight", weight}}},
                              {"required", {"path", "weight"}},
                              {"additionalProperties", false}};
  ValueSchema list = list_of({{"oneOf", {shards, task_schema({{"weight", weight}}, {"weight"})}}});
  list["minItems"] = 1;
  list["description"] = "interleaved sources, shards or tasks, each with a weight";
  return {{"oneOf", {nonempty_text(), task_schema(), list}}};
}

ValueSchema validation_schema() { return {{"oneOf", {any_text(), task_schema()}}}; }

DataSources read_sources(const json& v, const std::string& path, const Origin& origin,
                         int64_t version) {
  if (v.is_string()) {
    check_value(v, nonempty_text(), origin.at(path));
    return v.get<std::string>();
  }
  if (is_task(v)) {
    DataSources alone;
    alone.list.push_back({"", 1, read_task(v, path, origin, version)});
    return alone;
  }
  if (!v.is_array()) {
    throw Error(ExitCode::config, origin.at(path), describe(sources_schema()), describe_value(v),
                "write the path of a folder of shards, {\"task\": NAME}, or a list of such with "
                "weights");
  }
  std::vector<DataSource> sources;
  for (size_t i = 0; i < v.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    const auto refuse = [&](const std::string& found) {
      throw Error(ExitCode::config, origin.at(entry),
                  "an object with the keys path (or task) and weight", found,
                  "write {\"path\": ..., \"weight\": ...}");
    };
    if (!v[i].is_object()) refuse(describe_value(v[i]));
    if (is_task(v[i])) {
      TaskChoice task = read_task(v[i], entry, origin, version, {"weight"});
      if (!v[i].contains("weight")) refuse("no weight");
      check_value(v[i]["weight"], weight_schema(), origin.at(entry + ".weight"));
      sources.push_back({"", v[i]["weight"].get<double>(), std::move(task)});
      continue;
    }
    for (const auto& [name, unused] : v[i].items()) {
      if (name != "path" && name != "weight")
        refuse("the unknown key \"" + abbreviate(name) + "\"");
    }
    for (const char* name : {"path", "weight"}) {
      if (!v[i].contains(name)) refuse(std::string("no ") + name);
    }
    check_value(v[i]["path"], nonempty_text(), origin.at(entry + ".path"));
    check_value(v[i]["weight"], weight_schema(), origin.at(entry + ".weight"));
    sources.push_back({v[i]["path"].get<std::string>(), v[i]["weight"].get<double>()});
  }
  if (sources.empty()) {
    throw Error::fault(ExitCode::config, origin.at(path), "empty list",
                       "write the path of a folder of shards");
  }
  if (sources.size() == 1) sources[0].weight = 1;
  return DataSources(std::move(sources));
}

ordered_json sources_json(const DataSources& sources) {
  if (sources.list.empty()) return "";
  const auto source = [](const DataSource& s) -> ordered_json {
    return s.task ? task_json(*s.task) : ordered_json(s.path);
  };
  if (sources.list.size() == 1) return source(sources.list[0]);
  ordered_json out = ordered_json::array();
  for (const DataSource& s : sources.list) {
    out.push_back(s.task ? task_json(*s.task) : ordered_json{{"path", s.path}});
    out.back()["weight"] = s.weight;
  }
  return out;
}

void read_validation(const json& v, const std::string& path, const Origin& origin, int64_t version,
                     DataConfig* config) {
  config->val.clear();
  config->val_task.reset();
  if (is_task(v)) {
    config->val_task = read_task(v, path, origin, version);
  } else if (v.is_string()) {
    check_value(v, any_text(), origin.at(path));
    config->val = v.get<std::string>();
  } else {
    throw Error(ExitCode::config, origin.at(path), describe(validation_schema()), describe_value(v),
                "write one string, in double quotes, the path of a folder of shards; or {\"task\": "
                "NAME}");
  }
}

ordered_json validation_json(const DataConfig& config) {
  return config.val_task ? task_json(*config.val_task) : ordered_json(config.val);
}

}  // namespace bamtrain

#include "config/sources.h"

#include <utility>
#include <vector>

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
  weight["description"] = "its share of the sequences is in proportion";
  const ValueSchema source = {{"type", "object"},
                              {"properties", {{"path", path}, {"weight", weight}}},
                              {"required", {"path", "weight"}},
                              {"additionalProperties", false}};
  ValueSchema list = list_of(source);
  list["minItems"] = 1;
  list["description"] = "sources whose sequences take turns";
  return {{"oneOf", {nonempty_text(), list}}};
}

DataSources read_sources(const json& v, const std::string& path, const Origin& origin) {
  if (v.is_string()) {
    check_value(v, nonempty_text(), origin.at(path));
    return v.get<std::string>();
  }
  if (!v.is_array()) {
    throw Error(ExitCode::config, origin.at(path), describe(sources_schema()), describe_value(v),
                "write the path of a folder of shards, or a list of such with weights");
  }
  std::vector<DataSource> sources;
  for (size_t i = 0; i < v.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    const auto refuse = [&](const std::string& found) {
      throw Error(ExitCode::config, origin.at(entry), "an object with the keys path and weight",
                  found, "write {\"path\": ..., \"weight\": ...}");
    };
    if (!v[i].is_object()) refuse(describe_value(v[i]));
    for (const auto& [name, unused] : v[i].items()) {
      if (name != "path" && name != "weight") refuse("one named \"" + abbreviate(name) + "\"");
    }
    for (const char* name : {"path", "weight"}) {
      if (!v[i].contains(name)) refuse(std::string("none named ") + name);
    }
    check_value(v[i]["path"], nonempty_text(), origin.at(entry + ".path"));
    check_value(v[i]["weight"], weight_schema(), origin.at(entry + ".weight"));
    sources.push_back({v[i]["path"].get<std::string>(), v[i]["weight"].get<double>()});
  }
  if (sources.empty()) {
    throw Error(ExitCode::config, origin.at(path), "at least one source in a list", "none",
                "write the path of a folder of shards");
  }
  if (sources.size() == 1) return std::move(sources[0].path);
  return DataSources(std::move(sources));
}

ordered_json sources_json(const DataSources& sources) {
  if (sources.list.empty()) return "";
  if (sources.list.size() == 1) return sources.list[0].path;
  ordered_json out = ordered_json::array();
  for (const DataSource& s : sources.list) out.push_back({{"path", s.path}, {"weight", s.weight}});
  return out;
}

}  // namespace bamtrain

#include "record/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // answers to requests are a line each

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const std::string& found) {
  throw Error(ExitCode::io, path, expected, found,
              "remove the file and run the same command again: tasks are measured anew");
}

bool is_metric(const ordered_json& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}

/// Compared as values: members have no order.
bool are_equal(const ordered_json& a, const ordered_json& b) {
  return json::parse(a.dump()) == json::parse(b.dump());
}

bool of_one_model(const ordered_json& a, const ordered_json& b) {
  const auto part = [](const ordered_json& config, const char* path) {
    const ordered_json::json_pointer at(path);
    return config.contains(at) ? config[at] : ordered_json();
  };
  for (const char* path : {"/model", "/data/sequence_length"}) {
    if (!are_equal(part(a, path), part(b, path))) return false;
  }
  return true;
}

}  // namespace

bool is_task(const std::string& name) {
  const auto& others = kPerplexityResults;
  return name != kValidationResult && std::find(others.begin(), others.end(), name) == others.end();
}

Results::Results(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return;
  const std::string text = InputFile(path_, ExitCode::io, "check its permissions").text(kMostBytes);
  const json read =
      parse_json(text, {path_, ExitCode::io, "remove the file, or restore it from a copy"});
  if (!read.is_object() || !read.contains("format") || read["format"] != kFormat) {
    refuse(path_, "results of format " + std::to_string(kFormat),
           text_at(read, "format") + " as its format");
  }
  const json* const results = find_value(read, "results");
  const json *const config = find_value(read, "config"), *const name = find_value(read, "name"),
                    *const complete = find_value(read, "complete");
  if (results == nullptr || !results->is_object() || config == nullptr || !config->is_object() ||
      name == nullptr || !name->is_string() || complete == nullptr || !complete->is_boolean()) {
    refuse(path_, "the members name, complete, config and results of a run", "others");
  }
  for (const auto& [result, numbers] : results->items()) {
    if (!numbers.is_object()) refuse(path_, "an object as " + result, numbers.type_name());
  }
  // In the order of the file, which the first reader does not keep.
  const ordered_json ordered = ordered_json::parse(text);
  name_ = *name;
  complete_ = *complete;
  config_ = ordered["config"];
  results_ = ordered["results"];
}

void Results::set_run(const std::string& name, ordered_json config) {
  if (!of_one_model(config_, config)) results_ = ordered_json::object();
  name_ = name;
  config_ = std::move(config);
  complete_ = false;
}

void Results::set(const std::string& result, ordered_json numbers) {
  results_[result] = std::move(numbers);
}

void Results::arrange(const std::vector<std::string>& names) {
  ordered_json arranged = ordered_json::object();
  for (const std::string& name : names) {
    if (results_.contains(name)) arranged[name] = std::move(results_[name]);
  }
  results_ = std::move(arranged);
}

bool Results::has(const std::string& result, const ordered_json& of) const {
  const auto found = results_.find(result);
  return found != results_.end() && found->contains("of") && are_equal((*found)["of"], of);
}

void Results::write() const {
  const ordered_json all = {{"format", kFormat},
                            {"complete", complete_},
                            {"name", name_},
                            {"config", config_},
                            {"results", results_}};
  AtomicFile file(path_);
  file.write(all.dump(2) + "\n");
  file.commit();
}

std::optional<Metric> Results::metric(const std::string& name) const {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto result = results_.find(name.substr(0, slash));
  if (result == results_.end()) return std::nullopt;
  const std::string number = name.substr(slash + 1);
  const auto value = result->find(number), error = result->find(number + "_error");
  if (value == result->end() || !is_metric(*value)) return std::nullopt;
  Metric m{value->get<double>(), std::nullopt};
  if (error != result->end() && is_metric(*error)) m.error = error->get<double>();
  return m;
}

std::vector<std::string> Results::metrics() const {
  std::vector<std::string> names;
  for (const auto& [result, numbers] : results_.items()) {
    for (const auto& [number, value] : numbers.items()) {
      if (is_metric(value) && !number.ends_with("_error")) {
        names.push_back(std::string(result) + "/" + number);
      }
    }
  }
  return names;
}

}  // namespace bamtrain

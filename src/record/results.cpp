#include "record/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/abbreviate.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json_digest.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kResultsRemedy =
    "remove the file and run the same command again: tasks are measured again";
constexpr int64_t kMostBytes = int64_t{1} << 30;  // answers to requests take one line each

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const std::string& found) {
  throw Error(ExitCode::io, path, expected, found, kResultsRemedy);
}

/// Throws Error unless a number that has an error, and that error, is a number or null. Null stands
/// for non-finite values.
void check_numbers(const std::string& path, const std::string& result,
                   const ordered_json& numbers) {
  const auto check = [&](const std::string& name, const ordered_json& value) {
    if (value.is_number() || value.is_null()) return;
    refuse(path + ": " + result + ": " + name, "a number, or null", abbreviate(value.dump()));
  };
  for (const auto& [name, value] : numbers.items()) {
    const auto error = numbers.find(name + "_error");
    if (error == numbers.end()) continue;
    check(name, value);
    check(name + "_error", *error);
  }
}

bool is_metric(const ordered_json& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}

/// Compares values; the order of members does not matter.
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
  ordered_json read = parse_digested_json(text, {path_, ExitCode::io, kResultsRemedy});
  const auto has = [&](const char* member, bool (ordered_json::*holds)() const noexcept) {
    const auto found = read.find(member);
    return found != read.end() && ((*found).*holds)();
  };
  if (!has("results", &ordered_json::is_object) || !has("config", &ordered_json::is_object) ||
      !has("name", &ordered_json::is_string) || !has("complete", &ordered_json::is_boolean)) {
    refuse(path_, "the members name, complete, config and results", "others");
  }
  for (const auto& [result, numbers] : read["results"].items()) {
    if (!numbers.is_object()) refuse(path_, "an object as " + result, numbers.type_name());
    check_numbers(path_, result, numbers);
  }
  name_ = read["name"];
  complete_ = read["complete"];
  config_ = std::move(read["config"]);
  results_ = std::move(read["results"]);
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
  AtomicFile file(path_);
  file.write(digested_json({{"format", kDigestedFormat},
                            {"complete", complete_},
                            {"name", name_},
                            {"config", config_},
                            {"results", results_}}));
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

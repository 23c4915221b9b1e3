#include "study/run_inputs.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "record/run_files.h"
#include "record/validation_values.h"
#include "train/metric_name.h"
#include "train/training_data.h"

namespace bamtrain {

using nlohmann::json;

const std::string& RunInputsReader::sha256(const std::string& path) {
  const auto [found, is_new] = sha256_.emplace(path, "");
  std::error_code ignored;
  if (is_new && std::filesystem::is_regular_file(path, ignored)) {
    found->second = sha256_file(path);
  }
  return found->second;
}

RunInputs RunInputsReader::read(const RunConfig& config, const json& resolved) {
  RunInputs inputs;
  const json opened = {resolved["data"]["train"], resolved["data"]["sequence_length"],
                       resolved["model"]["vocab"], resolved["model"]["classes"]};
  const auto [training, is_new] = training_.emplace(opened.dump(), json());
  try {
    if (is_new) training->second = describe_data(*open_training_data(config));
  } catch (const Error&) {  // reported by the run if it is trained
  }
  inputs.training = training->second;
  if (config.data.validates()) {
    try {
      inputs.validation = validation_values(config);
    } catch (const Error&) {
    }
  }
  constexpr std::pair<const char*, const char*> kFiles[] = {
      {"file", "sha256"}, {"shots_file", "shots_sha256"}, {"haystack", "haystack_sha256"}};
  for (const TaskEvaluation& e : config.eval.tasks) {
    const auto* const texts = std::get_if<TextTaskRequest>(&e.request);
    if (texts == nullptr) continue;
    for (const auto& [option, key] : kFiles) {
      if (!texts->options.has(option)) continue;
      const std::string& now = sha256(texts->options.text(option));
      if (now.empty()) continue;
      for (const std::string& result : results_of(e)) inputs.measured.push_back({result, key, now});
    }
  }
  return inputs;
}

bool is_of_other_data(const RunInputs& inputs, const json& state) {
  const json* const before = state.is_object() ? find_value(state, "data") : nullptr;
  if (inputs.training.is_null() || before == nullptr || !before->is_object()) return false;
  const auto differs = [&](const char* key) {
    const auto a = before->find(key), b = inputs.training.find(key);
    return a != before->end() && b != inputs.training.end() && *a != *b;
  };
  return differs("fingerprint") || differs("sample");
}

bool is_measured_on(const RunInputs& inputs, const Results& results) {
  const auto of = [&](const std::string& result) {
    const auto found = results.all().find(result);
    const bool says = found != results.all().end() && found->is_object() && found->contains("of");
    return says ? json::parse((*found)["of"].dump()) : json();
  };
  const json validated = of(kValidationResult);
  if (!inputs.validation.is_null() && !validated.is_null() && validated != inputs.validation) {
    return false;
  }
  for (const RunInputs::File& file : inputs.measured) {
    const json before = of(file.result);
    if (before.is_object() && before.contains(file.key) && before[file.key] != file.sha256) {
      return false;
    }
  }
  return true;
}

}  // namespace bamtrain

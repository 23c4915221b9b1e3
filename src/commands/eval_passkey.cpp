// bamtrain eval --task passkey: BAM's number in the midst of filler, against length and depth.

#include <variant>

#include "commands/retrieval.h"
#include "commands/task_settings.h"
#include "config/option.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr int64_t kMostDepths = 1000;

using Settings = std::map<std::string, std::string>;

Settings settings_of(const EvalArguments& arguments) {
  std::vector<std::string> keys = {"depths", "generate"};
  for (const OptionSpec& spec : passkey_task().options) keys.push_back(spec.name);
  return task_settings(arguments.task_settings, "passkey", keys, "retrieval");
}

std::string value_or(const Settings& settings, const std::string& key, const std::string& other) {
  const auto at = settings.find(key);
  return at == settings.end() ? other : at->second;
}

json value_of(const OptionSpec& spec, const std::string& text) {
  if (std::holds_alternative<bool>(spec.fallback)) {
    return word_setting(spec.name, text, "true", "false");
  }
  if (!spec.integer) return text;
  return integer_setting(spec.name, text, static_cast<int64_t>(spec.minimum),
                         static_cast<int64_t>(spec.maximum));
}

/// As the run has them where it was trained on passkeys, else as published.
Options options_of(const Settings& settings, const RunConfig& c) {
  const std::vector<OptionSpec>& specs = passkey_task().options;
  json value = json::object();
  for (const DataSource& s : c.data.train.list) {
    if (s.task && s.task->info == &passkey_task()) value = options_json(specs, s.task->options);
  }
  for (const OptionSpec& spec : specs) {
    const auto at = settings.find(spec.name);
    if (at != settings.end()) value[spec.name] = value_of(spec, at->second);
  }
  try {
    return read_options(value, specs, "--task-set", Origin{}, c.config_version);
  } catch (const Error& e) {  // of one word among several
    throw e.as(ExitCode::usage, "--task-set question", "change it");
  }
}

}  // namespace

int run_eval_passkey(const EvalArguments& arguments) {
  const Settings settings = settings_of(arguments);
  const TextTaskInfo& info = *find_text_task("passkey");
  const int64_t depths =
      integer_setting("depths", value_or(settings, "depths", "20"), 2, kMostDepths);
  const bool generate =
      word_setting("generate", value_or(settings, "generate", "false"), "true", "false");
  TextTaskRequest request = {&info, info.name};
  request.lengths = sorted_lengths(arguments.lengths.empty() ? info.lengths : arguments.lengths);
  request.samples = arguments.samples;
  request.seed = arguments.seed.value_or(0);
  RetrievalModel model(arguments, value_or(settings, "tokenizer", ""), generate);
  request.options = options_of(settings, model.config());
  request.options.set("depths", static_cast<double>(depths));
  request.options.set("generate", generate);
  run_retrieval(arguments, request, model);
  return 0;
}

}  // namespace bamtrain

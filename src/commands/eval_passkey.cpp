// bamtrain eval --task passkey: BAM's number in the midst of filler, against length and depth.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "commands/retrieval.h"
#include "commands/task_settings.h"
#include "config/option.h"
#include "core/options_json.h"
#include "eval/passkey_scores.h"
#include "prompts/passkey_task.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostDepths = 1000;

// Published: no filler, then from 128 to 32,768.
const std::vector<int64_t> kPublishedLengths = {0,    128,  256,  512,   1024,
                                                2048, 4096, 8192, 16384, 32768};

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

PasskeyOptions prompts_of(const Options& options) {
  try {
    return passkey_options(options);
  } catch (const Error& e) {
    throw e.as(ExitCode::usage, "--task-set prefix_digits", "lower it, or raise digits");
  }
}

std::optional<Passkey> passkey_of(const Tokenizer& tokenizer, const PasskeyOptions& options) {
  try {
    return Passkey(tokenizer, options);
  } catch (const Error& e) {
    throw as_option(e);
  }
}

/// Error before anything is computed where a length has no prompt, or none that the model knows.
void check_lengths(const std::vector<int64_t>& lengths, const Passkey& passkey,
                   const RetrievalModel& model) {
  for (const int64_t length : lengths) {
    try {
      model.check_text(passkey_text(passkey, length), fmt::format("length {}", length));
    } catch (const Error& e) {
      throw as_option(e);
    }
  }
}

ordered_json task_of(const Options& options, const PasskeyRequest& request) {
  ordered_json task = {{"task", "passkey"}};
  task.update(options_json(passkey_task().options, options));
  task.erase("tokenizer");  // its SHA-256 is beside it
  task["depths"] = request.depths;
  task["generate"] = request.generate;
  return task;
}

}  // namespace

int run_eval_passkey(const EvalArguments& arguments) {
  const Settings settings = settings_of(arguments);
  PasskeyRequest request;
  request.depths = integer_setting("depths", value_or(settings, "depths", "20"), 2, kMostDepths);
  request.samples = arguments.samples.value_or(1);
  request.seed = arguments.seed.value_or(0);
  request.generate =
      word_setting("generate", value_or(settings, "generate", "false"), "true", "false");
  const std::vector<int64_t> lengths =
      sorted_lengths(arguments.lengths.empty() ? kPublishedLengths : arguments.lengths);

  RetrievalModel model(arguments, value_or(settings, "tokenizer", ""), request.generate);
  const Options options = options_of(settings, model.config());
  const std::optional<Passkey> passkey = passkey_of(model.tokenizer(), prompts_of(options));
  check_lengths(lengths, *passkey, model);
  std::vector<RetrievalPart> parts;
  for (const int64_t length : lengths) parts.push_back({"passkey", length});
  RetrievalResult result(arguments.output,
                         model.facts(task_of(options, request), request.samples, request.seed),
                         parts, {"exact_match", "accuracy"}, request.depths);

  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (result.has(i)) continue;
    bytes = std::max(bytes, passkey_scores_bytes(*passkey, request, lengths[i], model.scored()));
  }
  if (bytes > 0) {
    model.check_memory(bytes);
    model.load();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (result.has(i)) continue;
    result.put(i, score_passkey(*passkey, request, lengths[i], model.scored(),
                                model.document_start(), TaskShare{}, result.progress(i)));
  }
  result.finish();
  return 0;
}

}  // namespace bamtrain

#include "commands/text_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <variant>

#include "commands/task_settings.h"
#include "core/faults.h"
#include "core/join.h"

namespace bamtrain {

namespace {

std::string option_at(const OptionSpec& spec) { return "--task-set " + spec.name; }

bool flag_of(const OptionSpec& spec, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  throw Error(ExitCode::usage, option_at(spec), "true or false", text, "");
}

double integer_of(const OptionSpec& spec, const std::string& text) {
  require(spec.integer, "numbers of these tasks are integers");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto number = static_cast<double>(value);
  if (error == std::errc() && end == text.data() + text.size() && number >= spec.minimum &&
      number <= spec.maximum) {
    return number;
  }
  throw Error(ExitCode::usage, option_at(spec),
              fmt::format("an integer from {} to {}", spec.minimum, spec.maximum), text, "");
}

const std::string& word_of(const OptionSpec& spec, const std::string& text) {
  const StringList& known = spec.choices;
  if (known.empty() || std::find(known.begin(), known.end(), text) != known.end()) return text;
  throw unknown_name(ExitCode::usage, option_at(spec), "value", text, known);
}

/// Parses "a,b"; "all" selects all choices.
StringList list_of(const OptionSpec& spec, const std::string& text) {
  if (text == "all") return spec.choices;
  StringList words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = word_of(spec, text.substr(at, end - at));
    at = end + 1;
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

OptionValue value_of(const OptionSpec& spec, const std::string& text) {
  if (std::holds_alternative<bool>(spec.default_value)) return flag_of(spec, text);
  if (std::holds_alternative<double>(spec.default_value)) return integer_of(spec, text);
  if (std::holds_alternative<StringList>(spec.default_value)) return list_of(spec, text);
  return word_of(spec, text);
}

const TextTaskInfo& info_of(const EvalArguments& arguments) {
  const TextTaskInfo* const info = find_text_task(arguments.task);
  require(info != nullptr, "a task of texts");
  return *info;
}

/// Throws Error if --output would replace a file that the task reads.
void check_apart(const EvalArguments& arguments, const Options& options) {
  for (const char* const read : {"file", "shots_file", "haystack", "tokenizer"}) {
    if (arguments.output.empty() || !options.has(read) || options.text(read).empty()) continue;
    std::error_code ignored;
    if (!std::filesystem::equivalent(arguments.output, options.text(read), ignored)) continue;
    throw Error::fault(ExitCode::usage, "--output",
                       arguments.output + " is the " + read + " that the task reads",
                       "choose another name");
  }
}

}  // namespace

Options text_settings(const EvalArguments& arguments) {
  const TextTaskInfo& info = info_of(arguments);
  std::vector<std::string> names;
  for (const OptionSpec& spec : info.options) names.push_back(spec.name);
  Options settings;
  for (const auto& [key, text] : task_settings(arguments.task_settings)) {
    const auto spec = std::find_if(info.options.begin(), info.options.end(),
                                   [&, name = key](const auto& s) { return s.name == name; });
    if (spec == info.options.end()) {
      throw unknown_name(ExitCode::usage, "--task-set", "option of " + info.name, key, names,
                         "choose one of " + join(names) + ", see bamtrain help " +
                             (info.of_lengths ? "retrieval" : "downstream"));
    }
    settings.set(key, value_of(*spec, text));
  }
  return settings;
}

TextTaskRequest text_request(const EvalArguments& arguments, const Options& settings,
                             const Options& defaults) {
  const TextTaskInfo& info = info_of(arguments);
  TextTaskRequest r = {&info, info.name, defaults};
  for (const auto& [name, value] : settings.values()) r.options.set(name, value);
  r.lengths = ascending(arguments.lengths.empty() ? info.lengths : arguments.lengths);
  r.samples = arguments.samples;
  r.seed = arguments.seed.value_or(0);
  try {
    check_text_options(r);
  } catch (const Error& e) {
    throw at_option(e);
  }
  check_apart(arguments, r.options);
  return r;
}

Error at_option(const Error& e) {
  const std::string key = key_in_braces(e.where());
  if (key.empty()) return e;
  if (key == "tokenizer") {
    return e.as(ExitCode::data, "the model's tokenizer",
                "use a model whose tokenizer does, such as Mistral's");
  }
  const bool of_its_own = key == "lengths" || key == "seed";
  return e.as(ExitCode::usage, (of_its_own ? "--" : "--task-set ") + key);
}

}  // namespace bamtrain

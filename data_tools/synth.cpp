#include "data_tools/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/join.h"
#include "core/nearest.h"
#include "tasks/registry.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

const TaskInfo& task_named(const std::string& name) {
  if (const TaskInfo* found = find_task(name)) return *found;
  throw Error(ExitCode::usage, "synth", "a task's name", name,
              did_you_mean(name, task_names(), "bamdata synth --help lists them"));
}

OptionValue word_of(const OptionSpec& option, const std::string& text) {
  const auto& words = option.choices;
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  throw Error(ExitCode::usage, "--set " + option.name, "one of " + join(words), text,
              did_you_mean(text, words, "use one of them"));
}

OptionValue number_of(const OptionSpec& option, const std::string& text) {
  const char* end = text.data() + text.size();
  int64_t number = 0;
  const auto [read, failure] = std::from_chars(text.data(), end, number);
  const auto value = static_cast<double>(number);
  if (failure == std::errc() && read == end && value >= option.minimum && value <= option.maximum) {
    return value;
  }
  throw Error(ExitCode::usage, "--set " + option.name,
              fmt::format("an integer from {:.0f} to {:.0f}", option.minimum, option.maximum), text,
              "give one of them");
}

/// The value that a text stands for. Tasks have options of words and of integers alone.
OptionValue value_of(const OptionSpec& option, const std::string& text) {
  if (std::holds_alternative<std::string>(option.fallback)) return word_of(option, text);
  require(std::holds_alternative<double>(option.fallback) && option.integer,
          "an option of words or of integers");
  return number_of(option, text);
}

Options options_of(const TaskInfo& info, const std::vector<std::string>& settings) {
  Options options = default_options(info.options);
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const auto option = std::find_if(info.options.begin(), info.options.end(),
                                     [&](const OptionSpec& o) { return o.name == name; });
    if (equals == std::string::npos || option == info.options.end()) {
      std::vector<std::string> names;
      for (const OptionSpec& o : info.options) names.push_back(o.name);
      throw Error(
          ExitCode::usage, "--set",
          names.empty() ? fmt::format("nothing: {} has no options", info.name)
                        : fmt::format("KEY=VALUE, an option of {}: {}", info.name, join(names)),
          setting, names.empty() ? "leave it out" : did_you_mean(name, names, "use one of them"));
    }
    options.set(name, value_of(*option, setting.substr(equals + 1)));
  }
  return options;
}

Task task_of(const SynthOptions& options) {
  const TaskInfo& info = task_named(options.task);
  const LengthRange lengths =
      options.lengths.empty() ? info.lengths : LengthRange{options.lengths[0], options.lengths[1]};
  try {
    return Task(info, options_of(info, options.settings), lengths, options.seed, "train");
  } catch (const Error& e) {
    if (e.code() != ExitCode::config) throw;
    throw e.as(
        ExitCode::usage, "--length",
        fmt::format("give a range such as {},{}", info.lengths.shortest, info.lengths.longest));
  }
}

ordered_json json_of(const Example& example, int64_t length) {
  ordered_json targets = ordered_json::array();
  for (const int32_t t : example.targets) {
    targets.push_back(t == kNoTarget ? ordered_json(nullptr) : ordered_json(t));
  }
  return {{"length", length}, {"input", example.inputs}, {"targets", std::move(targets)}};
}

/// Inputs with their targets below them, in as many lines as they fill.
std::string text_of(const TaskInfo& info, const Example& example) {
  constexpr size_t kColumns = 96;
  std::string out, inputs, targets;
  const auto flush = [&] {
    while (!targets.empty() && targets.back() == ' ') targets.pop_back();
    out += "  input  " + inputs + "\n";
    out += "  target " + targets + "\n";
    inputs.clear();
    targets.clear();
  };
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const std::string input = info.symbol(example.inputs[i]);
    const int32_t target = example.targets[i];
    const std::string answer = target == kNoTarget ? "" : info.label(target);
    const size_t width = std::max(input.size(), answer.size());
    if (inputs.size() + 1 + width > kColumns) flush();
    inputs += ' ' + input + std::string(width - input.size(), ' ');
    targets += ' ' + answer + std::string(width - answer.size(), ' ');
  }
  flush();
  return out;
}

}  // namespace

void synth(const SynthOptions& options, std::FILE* out) {
  if (options.count > Draws::kMaxIndex - options.first) {
    throw Error(ExitCode::usage, "--count",
                fmt::format("at most {} from --first {} on", Draws::kMaxIndex - options.first,
                            options.first),
                std::to_string(options.count), "lower one of them");
  }
  const Task task = task_of(options);
  Example example;
  for (int64_t n = options.first; n < options.first + options.count; ++n) {
    const int64_t length = task.length(n);
    task.draw(n, length, &example);
    const std::string text = options.json ? json_of(example, length).dump() + "\n"
                                          : fmt::format("{} {}, length {}\n{}", task.info().name, n,
                                                        length, text_of(task.info(), example));
    fmt::print(out, "{}", text);
  }
}

std::string list_of_tasks() {
  constexpr size_t kColumn = 26;
  std::string out = "\nTasks:\n";
  for (const TaskInfo& t : all_tasks()) {
    out += "  " + t.name + std::string(kColumn - t.name.size(), ' ') + t.description + "\n";
    for (const OptionSpec& o : t.options) {
      const std::string values =
          o.integer ? fmt::format("{:.0f}..{:.0f}", o.minimum, o.maximum) : join(o.choices, "|");
      out += std::string(kColumn + 2, ' ') + "--set " + o.name + "=" + values + ": " +
             o.description + "\n";
    }
  }
  return out;
}

}  // namespace bamtrain

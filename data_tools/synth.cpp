#include "data_tools/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/faults.h"
#include "core/help_format.h"
#include "core/join.h"
#include "prompts/passkey_task.h"
#include "tasks/passkey.h"
#include "tasks/registry.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

const TaskInfo& task_named(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskInfo* t : shown_tasks()) {
    if (t->name == name) return *t;
    names.push_back(t->name);
  }
  throw unknown_name(ExitCode::usage, "synth", "task", name, names,
                     "bamdata synth --help lists the tasks");
}

/// Returns `text` as one of the option's choices; any text if it has no choices.
OptionValue word_of(const OptionSpec& option, const std::string& text) {
  const auto& words = option.choices;
  if (words.empty() || std::find(words.begin(), words.end(), text) != words.end()) return text;
  throw unknown_name(ExitCode::usage, "--set " + option.name, "value", text, words);
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
              "");
}

OptionValue truth_of(const OptionSpec& option, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  throw Error(ExitCode::usage, "--set " + option.name, "true or false", text, "");
}

/// Parses an option's value. Tasks only have options of words, integers and booleans.
OptionValue value_of(const OptionSpec& option, const std::string& text) {
  if (std::holds_alternative<std::string>(option.default_value)) return word_of(option, text);
  if (std::holds_alternative<bool>(option.default_value)) return truth_of(option, text);
  require(std::holds_alternative<double>(option.default_value) && option.integer,
          "an option of words, of integers or of true and false");
  return number_of(option, text);
}

Options options_of(const TaskInfo& info, const std::vector<std::string>& settings) {
  Options options = default_options(info.options);
  std::set<std::string> given;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const auto option = std::find_if(info.options.begin(), info.options.end(),
                                     [&](const OptionSpec& o) { return o.name == name; });
    if (equals == std::string::npos || option == info.options.end()) {
      std::vector<std::string> names;
      for (const OptionSpec& o : info.options) names.push_back(o.name);
      if (names.empty()) {
        throw Error::fault(ExitCode::usage, "--set " + setting, info.name + " has no options",
                           "leave it out");
      }
      if (equals == std::string::npos) {
        throw Error(ExitCode::usage, "--set", "KEY=VALUE", setting,
                    info.name + " has the options " + join(names));
      }
      throw unknown_name(ExitCode::usage, "--set", "option of " + info.name, name, names);
    }
    if (!given.insert(name).second) {
      throw Error::fault(ExitCode::usage, "--set", name + " is given twice", "remove one");
    }
    options.set(name, value_of(*option, setting.substr(equals + 1)));
  }
  return options;
}

/// Any tokenizer is allowed: no model limits its ids.
std::unique_ptr<Task> open(const TaskInfo& info, const Options& settings, LengthRange lengths,
                           uint64_t seed) {
  if (!info.of_tokenizer) return std::make_unique<Task>(info, settings, lengths, seed, "train");
  if (settings.text("tokenizer").empty()) {
    throw missing(ExitCode::usage, "--set tokenizer", "the tokenizer file of the sequences",
                  "give --set tokenizer=FILE");
  }
  return PasskeyTask::open(settings, lengths, std::numeric_limits<int32_t>::max(), seed, "train");
}

std::unique_ptr<Task> task_of(const SynthOptions& options) {
  const TaskInfo& info = task_named(options.task);
  const LengthRange lengths =
      options.lengths.empty() ? info.lengths : LengthRange{options.lengths[0], options.lengths[1]};
  try {
    return open(info, options_of(info, options.settings), lengths, options.seed);
  } catch (const Error& e) {
    if (e.code() != ExitCode::config) throw;
    if (e.where() != "{length}") {
      throw e.as(ExitCode::usage, "--set " + e.where().substr(1, e.where().size() - 2),
                 "give another; bamdata synth --help lists the options");
    }
    throw e.as(ExitCode::usage, "--length",
               info.of_tokenizer ? "give other lengths"
                                 : fmt::format("give a range such as {},{}", info.lengths.shortest,
                                               info.lengths.longest));
  }
}

ordered_json example_json(const Example& example, int64_t length) {
  ordered_json targets = ordered_json::array();
  for (const int32_t t : example.targets) {
    targets.push_back(t == kIgnoreIndex ? ordered_json(nullptr) : ordered_json(t));
  }
  return {{"length", length}, {"input", example.inputs}, {"targets", std::move(targets)}};
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Inputs with their targets below, wrapped to as many lines as needed.
std::string text_of(const Task& task, const Example& example) {
  constexpr size_t kColumns = 96;
  std::string out, inputs, targets;
  size_t columns = 0;
  const auto flush = [&] {
    while (!targets.empty() && targets.back() == ' ') targets.pop_back();
    out += "  input  " + inputs + "\n";
    out += "  target " + targets + "\n";
    inputs.clear();
    targets.clear();
    columns = 0;
  };
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const std::string input = task.symbol(example.inputs[i]);
    const int32_t target = example.targets[i];
    const std::string answer = target == kIgnoreIndex ? "" : task.label(target);
    const size_t of_input = characters(input), of_answer = characters(answer);
    const size_t width = std::max(of_input, of_answer);
    if (columns + 1 + width > kColumns) flush();
    columns += 1 + width;
    inputs += ' ' + input + std::string(width - of_input, ' ');
    targets += ' ' + answer + std::string(width - of_answer, ' ');
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
  const std::unique_ptr<Task> opened = task_of(options);
  const Task& task = *opened;
  Example example;
  for (int64_t n = options.first; n < options.first + options.count; ++n) {
    const int64_t length = task.length(n);
    task.draw(n, length, &example);
    const std::string text = options.json ? example_json(example, length).dump() + "\n"
                                          : fmt::format("{} {}, length {}\n{}", task.info().name, n,
                                                        length, text_of(task, example));
    fmt::print(out, "{}", text);
  }
}

std::vector<const TaskInfo*> shown_tasks() {
  std::vector<const TaskInfo*> tasks;
  for (const TaskInfo& t : all_tasks()) tasks.push_back(&t);
  tasks.push_back(&passkey_task());
  return tasks;
}

std::string list_of_tasks() {
  std::string out = "Tasks:\n";
  for (const TaskInfo* t : shown_tasks()) {
    out += help_entry(t->name, t->description);
    for (const OptionSpec& o : t->options) {
      std::string values = join(o.choices, "|");
      if (o.integer) values = fmt::format("{:.0f}..{:.0f}", o.minimum, o.maximum);
      if (std::holds_alternative<bool>(o.default_value)) values = "true|false";
      if (values.empty()) values = "TEXT";
      out += help_entry("", "--set " + o.name + "=" + values + ": " + o.description);
    }
  }
  return out;
}

}  // namespace bamtrain

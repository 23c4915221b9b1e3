#include "core/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "core/help_format.h"
#include "core/list_arguments.h"

namespace bamtrain {

namespace {

bool is_option_name(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name.substr(0, name.find('=')));
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : subcommands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

/// A command line, read up to the word at the cursor.
struct Position {
  const CLI::App* app;                  // the program, or its command
  std::vector<std::string> arguments;   // of it
  const CLI::Option* option = nullptr;  // whose value comes next
};

void read_word(const std::string& word, Position* at) {
  if (is_option_name(word)) {
    const CLI::Option* const option = find_option(*at->app, word);
    const bool open = option != nullptr && option->get_items_expected_max() > 0 &&
                      word.find('=') == std::string::npos;
    at->option = open ? option : nullptr;
  } else if (at->option != nullptr) {
    // Options of settings take more of them (core/list_arguments.h).
    const bool many = takes_many(*at->option) && at->option->get_allow_extra_args();
    if (!many && !is_setting(word)) at->option = nullptr;
  } else if (const CLI::App* const command =
                 at->arguments.empty() ? find_command(*at->app, word) : nullptr) {
    *at = {command, {}};
  } else {
    at->arguments.push_back(word);
  }
}

/// The argument that the next word is; null if it is one too many.
const CLI::Option* next_argument(const Position& at) {
  const auto arguments = arguments_of(*at.app);
  if (at.arguments.size() < arguments.size()) return arguments[at.arguments.size()];
  return !arguments.empty() && takes_many(*arguments.back()) ? arguments.back() : nullptr;
}

bool takes_path(const CLI::Option& option) {
  if (option.get_positional()) return true;
  const std::string type = option.get_type_name();
  return type == "FILE" || type == "DIR" || type == "PATH" || type == "HOW";
}

std::vector<Candidate> values_of(const CLI::Option& option, const Position& at,
                                 const std::string& word, const Values& values) {
  std::vector<Candidate> out;
  for (const std::string& choice : option_choices(option)) out.push_back({choice});
  if (!out.empty()) return out;
  if (values != nullptr) {
    if (auto known = values(option, at.arguments, word)) return *known;
  }
  if (takes_path(option)) out.push_back({kAnyFile});
  return out;
}

std::vector<Candidate> options_of(const CLI::App& app) {
  std::vector<Candidate> out;
  for (const OptionGroup& group : option_groups(app)) {
    for (const CLI::Option* option : group.options) {
      for (const std::string& name : option_names(*option)) {
        out.push_back({name, option->get_description()});
      }
    }
  }
  return out;
}

std::vector<Candidate> candidates(const Position& at, const std::string& word,
                                  const Values& values) {
  if (at.option != nullptr && !is_option_name(word)) {
    return values_of(*at.option, at, word, values);
  }
  if (const size_t equals = word.find('='); word.starts_with("--") && equals != word.npos) {
    const CLI::Option* const option = find_option(*at.app, word);
    if (option == nullptr) return {};
    const std::string name = word.substr(0, equals + 1);
    auto out = values_of(*option, at, word.substr(equals + 1), values);
    for (Candidate& c : out) (c.word == kAnyFile ? c.text : c.word).insert(0, name);
    return out;
  }
  if (word.starts_with('-')) return options_of(*at.app);
  std::vector<Candidate> out;
  if (at.arguments.empty()) {
    for (const CLI::App* command : subcommands_of(*at.app)) {
      out.push_back({command->get_name(), command->get_description()});
    }
  }
  if (const CLI::Option* const argument = next_argument(at)) {
    for (Candidate& c : values_of(*argument, at, word, values)) out.push_back(std::move(c));
  }
  return out;
}

}  // namespace

std::vector<Candidate> completions(const CLI::App& app, const std::vector<std::string>& words,
                                   const Values& values) {
  Position at{&app, {}};
  const std::string word = words.empty() ? "" : words.back();
  for (size_t i = 0; i + 1 < words.size(); ++i) read_word(words[i], &at);
  std::vector<Candidate> out = candidates(at, word, values);
  std::erase_if(
      out, [&word](const Candidate& c) { return c.word != kAnyFile && !c.word.starts_with(word); });
  return out;
}

bool print_completions(const CLI::App& app, int argc, char** argv, const Values& values) {
  if (argc < 2 || std::string_view(argv[1]) != "--complete") return false;
  for (const Candidate& c : completions(app, {argv + 2, argv + argc}, values)) {
    fmt::print("{}\t{}\n", c.word, c.text);
  }
  return true;
}

}  // namespace bamtrain

#include "core/usage_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "core/abbreviate.h"
#include "core/closest_match.h"

namespace bamtrain {

namespace {

/// The first command with the same first letters: inspect for "infoo". Empty if no command matches,
/// or the word cannot be a command name.
std::string same_beginning(const std::string& word, const std::vector<std::string>& commands) {
  constexpr size_t kLetters = 2;
  const bool is_name = word.size() > kLetters && std::ranges::all_of(word, [](char c) {
                         return c == '-' || std::isalpha(static_cast<unsigned char>(c));
                       });
  const auto found = std::ranges::find_if(commands, [&](const std::string& command) {
    return command.starts_with(word.substr(0, kLetters));
  });
  return is_name && found != commands.end() ? *found : "";
}

/// The option or subcommand closest to a word of the refused command line; empty if none is close.
std::string suggestion(const CLI::App& app) {
  std::vector<const CLI::App*> used = {&app};
  for (const CLI::App* sub : app.get_subcommands()) used.push_back(sub);
  std::vector<std::string> options, subcommands;
  for (const CLI::App* a : used) {
    for (const CLI::Option* o : a->get_options()) {
      for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
    }
  }
  if (used.size() == 1) {
    for (const CLI::App* sub : app.get_subcommands(nullptr)) subcommands.push_back(sub->get_name());
  }
  for (const std::string& argument : app.remaining(true)) {
    const std::string word = argument.substr(0, argument.find('='));
    const std::string near = closest_match(word, word.starts_with("-") ? options : subcommands);
    if (!near.empty()) return near;
    if (const std::string begins = same_beginning(word, subcommands); !begins.empty()) {
      return begins;
    }
  }
  return "";
}

/// If the refused word is not an option: a remedy saying that training needs no command.
std::string without_command(const std::string& program, const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  const bool of_program = app.get_subcommands().empty();
  if (!of_program || words.empty() || words[0].starts_with("-")) return "";
  if (app.get_option_no_throw("--config") == nullptr) return "";
  return program + " --config FILE trains; --help lists its commands";
}

/// What was expected and what was found.
std::pair<std::string, std::string> parts_of(const CLI::App& app, const CLI::ParseError& refusal) {
  const std::string text = refusal.what();
  if (dynamic_cast<const CLI::RequiredError*>(&refusal)) {
    const std::string missing = text.substr(0, text.rfind(" is required"));
    const std::vector<std::string> words = app.remaining(true);
    if (missing != "A subcommand") return {missing, "none"};
    return {"a command", words.empty() ? "none" : abbreviate(words[0])};
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&refusal)) {
    std::string words;
    for (const std::string& word : app.remaining(true)) words += (words.empty() ? "" : " ") + word;
    return {"only options and arguments that it has", abbreviate(words)};
  }
  return {"options with the values that they take", text};
}

}  // namespace

Error usage_error(const std::string& program, const CLI::App& app, const CLI::ParseError& refusal) {
  std::string where = "command line", command = program;
  for (const CLI::App* sub : app.get_subcommands()) {
    where = sub->get_name();
    command = program + " " + where;
  }
  const std::string near = suggestion(app);
  std::string remedy = near.empty() ? without_command(program, app) : "did you mean " + near + "?";
  if (remedy.empty()) remedy = command + " --help lists what it takes";
  const auto [expected, found] = parts_of(app, refusal);
  return Error(ExitCode::usage, where, expected, found, remedy);
}

}  // namespace bamtrain

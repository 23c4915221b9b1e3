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

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// A refused command line: "bamtrain", or "bamtrain eval", and what of it nobody takes.
struct Refused {
  std::string program;    // "bamtrain"
  const CLI::App* app;    // the program
  const CLI::App* inner;  // its command, or the program
  std::string where;      // "eval"; empty: the program

  Error fault(const std::string& text, const std::string& remedy) const {
    return Error::fault(ExitCode::usage, where, text, remedy);
  }
  std::string help(const std::string& of_what) const {
    return program + (where.empty() ? "" : " " + where) + " --help lists " + of_what;
  }

  Error unknown_option(const std::string& argument) const {
    const std::string word = argument.substr(0, argument.find('='));
    std::vector<std::string> options;
    for (const CLI::App* a : {inner, app}) {
      for (const CLI::Option* o : a->get_options()) {
        for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
      }
    }
    return fault("unknown option '" + abbreviate(word) + "'",
                 did_you_mean(word, options, help("the options")));
  }

  Error unknown_command(const std::string& word) const {
    std::vector<std::string> commands;
    for (const CLI::App* a : app->get_subcommands(nullptr)) commands.push_back(a->get_name());
    const std::string text = "unknown command '" + abbreviate(word) + "'";
    const bool trains = std::ranges::find(commands, "train") != commands.end();
    if (trains && word.ends_with(".json")) {
      return fault(text, "to train this run: " + program + " train " + abbreviate(word));
    }
    std::string near = closest_match(word, commands);
    if (near.empty()) near = same_beginning(word, commands);
    return fault(text, near.empty() ? help("the commands") : "did you mean " + near + "?");
  }
};

/// "--a excludes --b" and the like as sentences of the field.
std::string sentence_of(const CLI::ParseError& refusal) {
  std::string text = refusal.what();
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    if (at != std::string::npos) text.replace(at, from.size(), to);
  };
  if (dynamic_cast<const CLI::ExcludesError*>(&refusal)) {
    replace(" excludes ", " cannot be combined with ");
  } else if (dynamic_cast<const CLI::RequiresError*>(&refusal)) {
    replace(" requires ", " needs ");
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&refusal)) {
    const std::string name = text.substr(0, text.find(": "));
    if (text.ends_with(" missing")) return name + " needs a value";
    if (text.starts_with(name + ": At Most 1 ")) return name + " is given more than once";
    replace("At Most", "at most");
    replace("At least", "at least");
    replace(" required but received ", " values, found ");
  }
  return text;
}

/// "RUN is required": of an argument that is also an option, CLI11 names the option.
std::string what_is_required(const CLI::App& app, const CLI::ParseError& refusal) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || !option->empty() || !option->get_positional()) continue;
    return option->get_name(true, false) + " is required";
  }
  return refusal.what();
}

}  // namespace

Error usage_error(const std::string& program, const CLI::App& app, const CLI::ParseError& refusal) {
  Refused refused{program, &app, &app, ""};
  for (const CLI::App* sub : app.get_subcommands()) {
    refused.inner = sub;
    refused.where = sub->get_name();
  }
  const bool of_program = refused.where.empty();
  const std::vector<std::string> words = app.remaining(true);
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&refusal) != nullptr;
  if (lacks || dynamic_cast<const CLI::ExtrasError*>(&refusal)) {
    // A misspelt option is what is wrong, even where another one is missing.
    if (!words.empty()) {
      if (is_option(words[0])) return refused.unknown_option(words[0]);
      if (of_program) return refused.unknown_command(words[0]);
      if (!lacks) {
        return refused.fault("unexpected argument '" + abbreviate(words[0]) + "'",
                             refused.help("the arguments"));
      }
    }
    if (of_program) return refused.fault("missing command", refused.help("the commands"));
    return refused.fault(what_is_required(*refused.inner, refusal), refused.help("the options"));
  }
  return refused.fault(sentence_of(refusal), refused.help("the options"));
}

}  // namespace bamtrain

#include "core/usage_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "catch.h"

using namespace bamtrain;

namespace {

/// The message for these arguments of a program that has an option, and a command with a required
/// option.
std::string message(std::vector<std::string> arguments) {
  CLI::App app("a program", "prog");
  std::string config, checkpoint, prompt, file, run;
  app.require_subcommand(0, 1);
  app.add_option("--config", config, "a file");
  CLI::App* command = app.add_subcommand("eval", "a command");
  command->add_option("--checkpoint", checkpoint, "a folder")->required();
  CLI::Option* option = command->add_option("--prompt", prompt, "text");
  command->add_option("--prompt-file", file, "text")->excludes(option);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    const Error error = usage_error("prog", app, e);
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is not known is named with the nearest that is") {
  CHECK(message({"--conifg", "x"}) ==
        "command line: expected only options and arguments that it has, found --conifg x; remedy: "
        "did you mean --config?");
  CHECK(message({"evla"}) ==
        "command line: expected only options and arguments that it has, found evla; remedy: did "
        "you mean eval?");
  CHECK(message({"--something-else"}).ends_with("remedy: prog --help lists what it takes"));
  for (const std::vector<std::string>& trains :
       std::vector<std::vector<std::string>>{{"train"}, {"train", "--config", "x"}}) {
    CHECK(
        message(trains).ends_with("remedy: prog --config FILE trains; --help lists its commands"));
  }
}

TEST_CASE("a word in the place of a command is named, with the nearest command") {
  const auto message_of = [](std::vector<std::string> arguments) {
    CLI::App app("a program", "prog");
    app.require_subcommand(1);
    for (const char* name : {"tokenize", "inspect", "verify"})
      app.add_subcommand(name, "a command");
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& e) {
      return std::string(usage_error("prog", app, e).what());
    }
    return std::string();
  };
  CHECK(message_of({"infoo"}) ==
        "command line: expected a command, found infoo; remedy: did you mean inspect?");
  CHECK(message_of({"tokenise"}) ==
        "command line: expected a command, found tokenise; remedy: did you mean tokenize?");
  CHECK(message_of({"xyz"}) ==
        "command line: expected a command, found xyz; remedy: prog --help lists what it takes");
  CHECK(message_of({"in/a.txt"}).ends_with("remedy: prog --help lists what it takes"));
  CHECK(message_of({}) ==
        "command line: expected a command, found none; remedy: prog --help lists what it takes");
}

TEST_CASE("what is missing is named") {
  CHECK(message({"eval"}) ==
        "eval: expected --checkpoint, found none; remedy: prog eval --help lists what it takes");
  CHECK(message({"eval", "--chekpoint", "x"}) ==
        "eval: expected --checkpoint, found none; remedy: did you mean --checkpoint?");
}

TEST_CASE("options that do not go together, twice or without a value are refused in one line") {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--prompt", "a", "--prompt-file", "b"}, {"--checkpoint", "y"}, {"--prompt"}}) {
    std::vector<std::string> arguments = {"eval", "--checkpoint", "x"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string text = message(arguments);
    INFO(text);
    CHECK(text.find("eval: expected options with the values that they take, found ") == 0);
    CHECK(text.find(more[0]) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}

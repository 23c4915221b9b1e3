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
  CHECK(message({"--conifg", "x"}) == "unknown option '--conifg'; did you mean --config?");
  CHECK(message({"--conifg=x"}) == "unknown option '--conifg'; did you mean --config?");
  CHECK(message({"evla"}) == "unknown command 'evla'; did you mean eval?");
  CHECK(message({"--something-else"}) ==
        "unknown option '--something-else'; prog --help lists the options");
  CHECK(message({"eval", "--checkpoint", "x", "--promt", "y"}) ==
        "eval: unknown option '--promt'; did you mean --prompt?");
  CHECK(message({"eval", "--checkpoint", "x", "y"}) ==
        "eval: unexpected argument 'y'; prog eval --help lists the arguments");
}

TEST_CASE("a configuration in the place of a command is what to train") {
  CLI::App app("a program", "prog");
  app.require_subcommand(0, 1);
  app.add_subcommand("train", "a command");
  std::vector<std::string> arguments = {"configs/run.json"};
  try {
    app.parse(arguments);
    FAIL("accepted");
  } catch (const CLI::ParseError& e) {
    CHECK(usage_error("prog", app, e).what() ==
          std::string("unknown command 'configs/run.json'; to train this run: prog train "
                      "configs/run.json"));
  }
}

TEST_CASE("what is missing is named by its argument where it has one") {
  CLI::App app("a program", "prog");
  std::string run;
  app.add_subcommand("eval", "a command")
      ->add_option("RUN,--checkpoint", run, "a folder")
      ->required();
  std::vector<std::string> arguments = {"eval"};
  try {
    app.parse(arguments);
    FAIL("accepted");
  } catch (const CLI::ParseError& e) {
    CHECK(usage_error("prog", app, e).what() ==
          std::string("eval: RUN is required; prog eval --help lists the options"));
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
  CHECK(message_of({"infoo"}) == "unknown command 'infoo'; did you mean inspect?");
  CHECK(message_of({"tokenise"}) == "unknown command 'tokenise'; did you mean tokenize?");
  CHECK(message_of({"xyz"}) == "unknown command 'xyz'; prog --help lists the commands");
  CHECK(message_of({"train"}) == "unknown command 'train'; prog --help lists the commands");
  CHECK(message_of({"in/a.txt"}) == "unknown command 'in/a.txt'; prog --help lists the commands");
  CHECK(message_of({}) == "missing command; prog --help lists the commands");
}

TEST_CASE("what is missing is named, but a misspelt option before it") {
  CHECK(message({"eval"}) == "eval: --checkpoint is required; prog eval --help lists the options");
  CHECK(message({"eval", "--chekpoint", "x"}) ==
        "eval: unknown option '--chekpoint'; did you mean --checkpoint?");
}

TEST_CASE("options that do not go together, twice or without a value are refused in one line") {
  const auto refused = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval", "--checkpoint", "x"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return message(arguments);
  };
  const std::string help = "; prog eval --help lists the options";
  CHECK(refused({"--prompt", "a", "--prompt-file", "b"}) ==
        "eval: --prompt cannot be combined with --prompt-file" + help);
  CHECK(refused({"--checkpoint", "y"}) == "eval: --checkpoint is given more than once" + help);
  CHECK(refused({"--prompt"}) == "eval: --prompt needs a value" + help);
}

// bamtrain help: the pages of docs/, embedded in the program.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "on_terminal.h"
#include "train/support.h"

using namespace bamtrain::testing;

TEST_CASE("help lists every page of docs and prints each as it is") {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  const Outcome list = run({bamtrain_program(), "help"});
  REQUIRE(list.code == 0);
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(source) + "/docs")) {
    const std::string topic = entry.path().stem().string();
    INFO(topic);
    CHECK(list.output.find("\n  " + topic + " ") != std::string::npos);
    const Outcome page = run({bamtrain_program(), "help", topic});
    CHECK(page.code == 0);
    CHECK(page.output == read_text(entry.path().string()));
    ++pages;
  }
  CHECK(pages >= 8);
}

TEST_CASE("no command of the pages asks for what a machine with AVX2 alone cannot do") {
  for (const char* topic :
       {"training", "resume", "processes", "compare", "export", "data", "prior"}) {
    const Outcome page = run({bamtrain_program(), "help", topic});
    std::istringstream lines(page.output);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("    ")) continue;
      INFO(topic << ": " << line);
      CHECK(line.find("precision") == std::string::npos);
    }
  }
}

TEST_CASE("a slip in a topic is answered with the nearest one") {
  for (const auto& [word, topic] :
       std::vector<std::pair<std::string, std::string>>{{"trainign", "training"},
                                                        {"trian", "train"},
                                                        {"EXPORT", "export"},
                                                        {"exit_codes", "exit-codes"}}) {
    const Outcome o = run({bamtrain_program(), "help", word});
    INFO(o.output);
    CHECK(o.code == 2);
    CHECK(o.output.find("did you mean " + topic + "?\n") != std::string::npos);
  }
}

TEST_CASE("help of a kind lists its mechanisms") {
  for (const auto& [kind, names] : std::vector<std::pair<std::string, std::string>>{
           {"scale", "none, ssmax, "}, {"normalizer", "softmax, entmax, "}, {"task", "copy, "}}) {
    const Outcome o = run({bamtrain_program(), "help", kind});
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find(names) != std::string::npos);
    CHECK(o.output.find("bamtrain help NAME") != std::string::npos);
  }
}

TEST_CASE("a key's last names are enough for help, where one key alone has them") {
  const auto help = [](const std::string& key) {
    return run({bamtrain_program(), "help", "config", key});
  };
  CHECK(help("lr").code == 0);
  CHECK(help("lr").output == help("optimizer.lr").output);
  CHECK(help("name").code == 0);  // a key of its own
  const Outcome o = help("every");
  INFO(o.output);
  CHECK(o.code == 2);
  CHECK(o.output.find("several keys end in every; choose one of ") != std::string::npos);
  CHECK(o.output.find("checkpoint.every, ") != std::string::npos);
}

TEST_CASE("an unknown topic is refused with the list of topics") {
  const Outcome o = run({bamtrain_program(), "help", "horoscope"});
  CHECK(o.code == 2);
  CHECK(o.output.find("exit-codes") != std::string::npos);
  CHECK(o.output.find("horoscope") != std::string::npos);
  CHECK(o.output.find("did you mean") == std::string::npos);
}

namespace {

std::string bamdata_program() {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  return std::string(build ? build : "build") + "/data_tools/bamdata";
}

/// What bamtrain help prints of `words`.
std::string help_of(std::vector<std::string> words) {
  words.insert(words.begin(), {bamtrain_program(), "help"});
  const Outcome o = run(words);
  INFO(o.output);
  CHECK(o.code == 0);
  return o.output;
}

/// A shell that runs `command` with these variables; $0 is bamtrain.
std::vector<std::string> shell(const std::string& variables, const std::string& command) {
  return {"sh", "-c", "export " + variables + "; " + command, bamtrain_program()};
}

}  // namespace

TEST_CASE("help config prints the entry of one key, and of a section all of its keys") {
  const std::string key = help_of({"config", "train.steps"});
  CHECK(key.starts_with("- `train.steps` (integer;"));
  CHECK(key.find("train.lanes") == std::string::npos);
  const std::string section = help_of({"config", "train"});
  CHECK(section.starts_with("## train: "));
  CHECK(section.find("- `train.steps` (integer;") != std::string::npos);
  CHECK(section.find("- `train.lanes` (integer;") != std::string::npos);
  CHECK(section.find("optimizer.lr") == std::string::npos);
  CHECK(help_of({"config", "model.attention.prior.theta"}).find("With rope:\n") == 0);
  const auto refused = [](const std::vector<std::string>& words) {
    std::vector<std::string> command = {bamtrain_program(), "help"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome o = run(command);
    CHECK(o.code == 2);
    return o.output;
  };
  CHECK(refused({"config", "model.widht"}) ==
        "bamtrain: help config: unknown key 'model.widht'; did you mean model.width?\n");
  CHECK(refused({"config", "horoscope"}) ==
        "bamtrain: help config: unknown key 'horoscope'; bamtrain help config lists the keys\n");
  CHECK(refused({"training", "train.steps"}) ==
        "bamtrain: help: unexpected argument 'train.steps'; only config takes one: bamtrain help "
        "config KEY\n");
}

TEST_CASE("help prints the page of every mechanism and task, and the options of a command") {
  for (const auto& [name, option] :
       std::vector<std::pair<std::string, std::string>>{{"rope", "- `theta` (number;"},
                                                        {"dape", "- `variant` ("},
                                                        {"by_length", "- `lengths` ("},
                                                        {"entmax", "- `learned` ("},
                                                        {"flip_flop", "- `ignore` ("},
                                                        {"niah", "- `haystack` ("}}) {
    const std::string page = help_of({name});
    INFO(page);
    CHECK(page.starts_with("# " + name + ": "));
    CHECK(page.find(option) != std::string::npos);
  }
  const Outcome o = run({bamtrain_program(), "help", "ropee"});
  CHECK(o.code == 2);
  CHECK(o.output == "bamtrain: help: unknown topic 'ropee'; did you mean rope?\n");
  CHECK(help_of({"eval"}) == run({bamtrain_program(), "eval", "--help"}).output);
}

TEST_CASE("the help of every command is in groups and fits in 80 columns") {
  const auto checked = [](const std::vector<std::string>& command) {
    const Outcome o = run(command);
    INFO(o.output);
    CHECK(o.code == 0);
    std::istringstream lines(o.output);
    std::vector<std::string> commands;
    bool of_commands = false;
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
      if (line == "Commands:") {
        of_commands = true;
      } else if (!line.starts_with(" ")) {
        of_commands = false;
      } else if (of_commands && line[2] != ' ') {
        commands.push_back(line.substr(2, line.find(' ', 2) - 2));
      }
    }
    return std::pair(o.output, commands);
  };
  for (const std::string& program : {bamtrain_program(), bamdata_program()}) {
    const auto [text, commands] = checked({program, "--help"});
    CHECK(commands.size() >= 6);
    for (const std::string& command : commands) checked({program, command, "--help"});
  }
  const auto has = [&](const std::vector<std::string>& command,
                       const std::vector<std::string>& groups) {
    const std::string text = checked(command).first;
    size_t at = 0;
    for (const std::string& group : groups) {
      INFO(group);
      at = text.find("\n" + group + ":\n", at);
      REQUIRE(at != std::string::npos);
    }
  };
  has({bamtrain_program(), "--help"}, {"Commands", "Training", "Other options"});
  has({bamtrain_program(), "eval", "--help"}, {"Tasks"});
  has({bamtrain_program(), "report", "--help"}, {"Arguments", "Output"});
}

TEST_CASE("a terminal gets pages of help through a pager, and nothing else does") {
  const std::string page = "\"$0\" help exit-codes";
  // As a terminal has lines end.
  const auto on_a_terminal = [&](const std::string& variables) {
    std::string text = on_terminal(80, shell(variables, page));
    std::erase(text, '\r');
    return text;
  };
  const std::string whole = help_of({"exit-codes"});
  CHECK(on_a_terminal("PAGER='sed s/^/paged:/'").starts_with("paged:# "));
  CHECK(on_a_terminal("PAGER=cat") == whole);
  CHECK(on_a_terminal("PAGER=") == whole);
  CHECK(on_a_terminal("PAGER=no-such-program-here") == whole);
  // One that is left before the end of the text.
  CHECK(on_a_terminal("PAGER='head -n 1'") == whole.substr(0, whole.find('\n') + 1));
  const Outcome piped = run(shell("PAGER='sed s/^/paged:/'", page));
  CHECK(piped.code == 0);
  CHECK(piped.output == whole);
}

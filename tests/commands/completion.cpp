// The scripts of scripts/completion in the shells that they are for, and the words they offer.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain::testing;

namespace {

using Words = std::vector<std::string>;

std::string source_folder() {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  return source;
}

std::string build_folder() {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  return build ? build : "build";
}

bool have(const std::string& program) {
  return run({"sh", "-c", "command -v " + program}).code == 0;
}

Words lines_of(const std::string& text) {
  Words out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}

/// What `command` prints, where both programs are on PATH.
Words lines_of(const Words& command) {
  const char* path = std::getenv("PATH");
  Words all = {"env", "PATH=" + build_folder() + "/src:" + build_folder() +
                          "/data_tools:" + (path ? path : "")};
  all.insert(all.end(), command.begin(), command.end());
  const Outcome o = run(all);
  INFO(o.output);
  REQUIRE(o.code == 0);
  return lines_of(o.output);
}

/// A shell's completions of a command line, of which blanks separate the words.
using Shell = Words (*)(const std::string& line);

Words in_bash(const std::string& line) {
  // As readline takes words apart: at blanks, and "=" is a word.
  Words command = {
      "bash", "-c",
      "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
      "compopt() { case $2 in default) compgen -f -- \"${COMP_WORDS[-1]}\" ;; esac; }; "
      "_bamtrain; printf '%s\\n' \"${COMPREPLY[@]}\"",
      source_folder() + "/scripts/completion/bamtrain.bash"};
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ' && c != '=') {
      word += c;
      continue;
    }
    if (!word.empty()) command.push_back(word);
    word.clear();
    if (c == '=') command.emplace_back("=");
  }
  if (line.ends_with(' ')) command.emplace_back("");
  Words out;
  const std::string before = line.substr(line.rfind(' ') + 1);
  const size_t equals = before.find('=');
  for (const std::string& added : lines_of(command)) {
    if (!added.empty())
      out.push_back(before.substr(0, equals == before.npos ? 0 : equals + 1) + added);
  }
  return out;
}

Words in_zsh(const std::string& line) {
  return lines_of({"zsh", "-f", source_folder() + "/tests/commands/complete.zsh",
                   source_folder() + "/scripts/completion/_bamtrain", line});
}

Words in_fish(const std::string& line) {
  Words out =
      lines_of({"fish", "--no-config", "-c", "source $argv[1]; complete --do-complete=\"$argv[2]\"",
                source_folder() + "/scripts/completion/bamtrain.fish", line});
  for (std::string& word : out) word = word.substr(0, word.find('\t'));
  return out;
}

/// Sorted, without the slash that some shells put after a folder.
Words sorted(Words words) {
  for (std::string& word : words) {
    if (word.ends_with('/')) word.pop_back();
  }
  std::sort(words.begin(), words.end());
  return words;
}

void check_shell(Shell complete) {
  const Workplace w;
  std::filesystem::create_directories(w.path("things/inner"));
  const auto offers = [&](const std::string& line, Words words) {
    INFO(line);
    CHECK(sorted(complete(line)) == sorted(std::move(words)));
  };
  offers("bamtrain ev", {"eval"});
  offers("bamtrain eval --checkp", {"--checkpoint"});
  offers("bamtrain eval --device c", {"cpu", "cuda", "check"});
  offers("bamtrain eval --device=c", {"--device=cpu", "--device=cuda", "--device=check"});
  offers("bamtrain --set model.attention.pri", {"model.attention.prior="});
  offers("bamtrain --set device=", {"device=auto", "device=cpu", "device=cuda", "device=check"});
  offers("bamtrain --set model.attention.scale=ss", {"model.attention.scale=ssmax"});
  offers("bamtrain --set train.steps=", {});
  offers("bamtrain help exit", {"exit-codes"});
  offers("bamtrain help config train.st", {"train.steps", "train.stop_at"});
  offers("bamdata tok", {"tokenize"});
  offers("bamdata synth even", {"even_pairs"});
  const std::string inner = w.path("things/inn"), whole = w.path("things/inner");
  offers("bamtrain --config " + inner, {whole});
  offers("bamtrain --config=" + inner, {"--config=" + whole});
  offers("bamtrain --set out_dir=" + inner, {"out_dir=" + whole});
  offers("bamtrain report x " + inner, {whole});
}

/// Commands and options that a help text lists: the first words of its entries.
Words listed(const std::string& help, const std::string& entry) {
  Words out;
  const std::regex pattern(entry);
  for (const std::string& line : lines_of(help)) {
    if (!std::regex_search(line, std::regex("^  [-a-z]"))) continue;
    const std::string label = line.substr(2, line.find("  ", 2) - 2);
    for (std::sregex_iterator at(label.begin(), label.end(), pattern), end; at != end; ++at) {
      out.push_back(at->str());
    }
  }
  return out;
}

std::string help_text(Words command) {
  command.emplace_back("--help");
  std::string out;
  for (const std::string& line : lines_of(command)) out += line + "\n";
  return out;
}

/// The words that `program --complete` answers.
Words completed(Words command) {
  command.insert(command.begin() + 1, "--complete");
  Words out = lines_of(command);
  for (std::string& word : out) word = word.substr(0, word.find('\t'));
  return out;
}

}  // namespace

TEST_CASE("every command and option of --help is offered, and no other") {
  for (const std::string program : {"bamtrain", "bamdata"}) {
    const std::string top = help_text({program});
    const std::string commands_text = top.substr(top.find("Commands:"));
    const Words commands =
        listed(commands_text.substr(0, commands_text.find("\n\n")), "^[a-z][-a-z]*");
    REQUIRE(commands.size() >= 6);
    CHECK(completed({program, ""}) == commands);
    const std::string option = "(^|, )--?[a-z][-a-z0-9]*";
    const auto options = [&](const std::string& help) {
      Words names = listed(help, option);
      for (std::string& name : names) {
        if (name.starts_with(", ")) name.erase(0, 2);
      }
      return sorted(names);
    };
    CHECK(sorted(completed({program, "-"})) == options(top));
    for (const std::string& command : commands) {
      INFO(program << " " << command);
      const std::string help = help_text({program, command});
      CHECK(sorted(completed({program, command, "-"})) == options(help));
      CHECK(options(help).size() >= 2);
    }
  }
}

TEST_CASE("bash completes") { check_shell(in_bash); }

TEST_CASE("zsh completes") {
  if (!have("zsh")) {
    WARN("zsh is not installed: not tested");
    return;
  }
  check_shell(in_zsh);
}

TEST_CASE("fish completes") {
  if (!have("fish")) {
    WARN("fish is not installed: not tested");
    return;
  }
  check_shell(in_fish);
}

TEST_CASE("values of keys: mechanisms, true and false, topics of help") {
  const auto offers = [](const Words& line, const std::string& word) {
    const Words all = completed(line);
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  CHECK(completed({"bamtrain", "--set", "model.tied="}) ==
        Words{"model.tied=true", "model.tied=false"});
  for (const char* prior : {"rope", "bam", "dape"}) {  // dape is a mix
    CHECK(offers({"bamtrain", "--set", "model.attention.prior="},
                 std::string("model.attention.prior=") + prior));
  }
  CHECK(offers({"bamtrain", "--set", "data.train="}, ":files"));
  CHECK(completed({"bamtrain", "train", "run.json", "--set", "seed=1", "train.ste"}) ==
        Words{"train.steps="});
  CHECK(completed({"bamtrain", "--set", "no.such.key="}).empty());
  for (const char* topic :
       {"config", "training", "rope", "ssmax", "entmax", "niah", "eval", "prior"}) {
    CHECK(offers({"bamtrain", "help", ""}, topic));
  }
  CHECK(offers({"bamtrain", "help", "config", ""}, "model.attention"));
  CHECK(completed({"bamtrain", "help", "training", ""}).empty());
  CHECK(completed({"bamtrain", "report", "--figure", "perplexity-l"}) == Words{"perplexity-last"});
  CHECK_FALSE(offers({"bamtrain", "generate", "--precision", ""}, "tf32"));
}

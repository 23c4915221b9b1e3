// scripts/completion/bamtrain.bash, called as bash calls it.

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain::testing;

namespace {

using Words = std::vector<std::string>;

/// The completions for the last word of a command line.
Words completions(const Words& line) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  Words command = {"bash", "-c",
                   "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                   "compopt() { :; }; _bamtrain; printf '%s\\n' \"${COMPREPLY[@]}\"",
                   std::string(source) + "/scripts/completion/bamtrain.bash"};
  command.insert(command.end(), line.begin(), line.end());
  const Outcome o = run(command);
  REQUIRE(o.code == 0);
  Words out;
  std::istringstream lines(o.output);
  for (std::string word; std::getline(lines, word);) out.push_back(word);
  return out;
}

bool offers(const Words& line, const std::string& word) {
  const Words all = completions(line);
  return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace

TEST_CASE("bash completes commands, their options, topics and keys from the program's own help") {
  const std::string program = bamtrain_program();
  CHECK(completions({program, "ev"}) == Words{"eval"});
  for (const char* command : {"eval", "export", "generate", "help", "report"}) {
    CHECK(offers({program, ""}, command));
  }
  CHECK(completions({program, "eval", "--checkp"}) == Words{"--checkpoint"});
  CHECK(offers({program, "--"}, "--dry-run"));
  CHECK_FALSE(offers({program, "eval", "--"}, "--dry-run"));
  CHECK(completions({program, "--set", "model.attention.pri"}) == Words{"model.attention.prior="});
  for (const bool apart : {true, false}) {  // bash splits words at "=", unless told not to
    const auto set = [&](const std::string& key, const std::string& value) {
      Words line = {program, "--set"};
      if (!apart) line.push_back(key + "=" + value);
      if (apart) line.insert(line.end(), {key, "="});
      if (apart && !value.empty()) line.push_back(value);
      return completions(line);
    };
    const std::string lead = apart ? "" : "device=";
    CHECK(set("device", "") == Words{lead + "auto", lead + "cpu", lead + "cuda", lead + "check"});
    CHECK(set("device", "c") == Words{lead + "cpu", lead + "cuda", lead + "check"});
    CHECK(set("model.tied", "t") == Words{(apart ? "" : "model.tied=") + std::string("true")});
    CHECK(set("model.attention.scale", "ss") ==
          Words{(apart ? "" : "model.attention.scale=") + std::string("ssmax")});
    CHECK(set("train.steps", "") == Words{""});
  }
  CHECK(completions({program, "eval", "--device", "c"}) == Words{"cpu", "cuda", "check"});
  CHECK(offers({program, "generate", "--precision", ""}, "bf16"));
  CHECK_FALSE(offers({program, "generate", "--precision", ""}, "tf32"));
  CHECK(completions({program, "report", "--figure", "perplexity-l"}) == Words{"perplexity-last"});
  CHECK(completions({program, "help", "exit"}) == Words{"exit-codes"});
  for (const char* topic : {"config", "training", "rope", "ssmax", "entmax", "niah", "eval"}) {
    CHECK(offers({program, "help", ""}, topic));
  }
  CHECK(completions({program, "help", "config", "train.st"}) ==
        Words{"train.steps", "train.stop_at"});
  CHECK(offers({program, "help", "config", ""}, "model.attention"));
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const std::string bamdata = std::string(build ? build : "build") + "/data_tools/bamdata";
  CHECK(completions({bamdata, "tok"}) == Words{"tokenize"});
  CHECK(offers({bamdata, "tokenize", "--d"}, "--document"));
}

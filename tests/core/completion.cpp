#include "core/completion.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/help_format.h"
#include "core/option_value.h"

using namespace bamtrain;

namespace {

using Words = std::vector<std::string>;

/// A program with options, a command, and arguments of that.
class Program {
 public:
  Program() : app_("a program", "prog") {
    set_help_format(app_);
    app_.add_option("--config", file_, "a file")->type_name("FILE");
    app_.add_option("-k,--kinds", many_, "kinds")->type_name("NAME");
    CLI::App* show = app_.add_subcommand("show", "shows things");
    take_words(show->add_option("--form", file_, "what form"), {"text", "json", "jsonl"});
    take_integers(show->add_option("--count", count_, "how many"), 1, 10);
    show->add_flag("--all", all_, "all of them");
    show->add_option("topic", topic_, "what to show");
    show->add_option("RUN", runs_, "folders");
    app_.add_subcommand("shut", "ends");
  }
  /// The words and, of files, what is in front of them.
  Words complete(const Words& line) const {
    Words out;
    for (const Candidate& c : completions(app_, line, topics)) {
      out.push_back(c.word + (c.word == kAnyFile ? c.text : ""));
    }
    return out;
  }
  const CLI::App& app() const { return app_; }

 private:
  static std::optional<std::vector<Candidate>> topics(const CLI::Option& option,
                                                      const Words& before, const std::string&) {
    if (option.get_name() != "topic") return std::nullopt;
    CHECK(before.empty());
    return std::vector<Candidate>{{"weather", "rain"}, {"wind"}};
  }

  CLI::App app_;
  std::string file_, topic_;
  Words many_, runs_;
  int count_ = 0;
  bool all_ = false;
};

}  // namespace

TEST_CASE("commands come first, options after a dash, each with its text") {
  const Program program;
  CHECK(completions(program.app(), {""}) ==
        std::vector<Candidate>{{"show", "shows things"}, {"shut", "ends"}});
  CHECK(completions(program.app(), {}) == completions(program.app(), {""}));
  CHECK(program.complete({"sho"}) == Words{"show"});
  CHECK(program.complete({"x"}).empty());
  CHECK(completions(program.app(), {"--c"}) == std::vector<Candidate>{{"--config", "a file"}});
  CHECK(program.complete({"-"}) == Words{"-h", "--help", "--config", "-k", "--kinds"});
  CHECK(program.complete({"show", "--"}) == Words{"--help", "--form", "--count", "--all"});
}

TEST_CASE("a value follows its option: words, files, or nothing that is known") {
  const Program program;
  CHECK(program.complete({"show", "--form", ""}) == Words{"text", "json", "jsonl"});
  CHECK(program.complete({"show", "--form", "js"}) == Words{"json", "jsonl"});
  CHECK(program.complete({"show", "--form=js"}) == Words{"--form=json", "--form=jsonl"});
  CHECK(program.complete({"--config", "a"}) == Words{":files"});
  CHECK(program.complete({"--config=a"}) == Words{":files--config="});
  CHECK(program.complete({"show", "--count", ""}).empty());
  CHECK(program.complete({"--unknown=a"}).empty());
  // After the value comes what may come without it; a flag has none.
  CHECK(program.complete({"--config", "a.json", "sh"}) == Words{"show", "shut"});
  CHECK(program.complete({"--config=a.json", "sh"}) == Words{"show", "shut"});
  CHECK(program.complete({"show", "--all", "we"}) == Words{"weather"});
  // As many values as there are.
  CHECK(program.complete({"-k", "show", "sh"}).empty());
  CHECK(program.complete({"-k", "show", "--c"}) == Words{"--config"});
}

TEST_CASE("arguments of a command come in their order, the last one again and again") {
  const Program program;
  CHECK(program.complete({"show", ""}) == Words{"weather", "wind"});
  CHECK(program.complete({"show", "wind", ""}) == Words{":files"});
  CHECK(program.complete({"show", "wind", "a", "b", "c"}) == Words{":files"});
  CHECK(program.complete({"shut", ""}).empty());
  CHECK(program.complete({"show", "shut", "--"}) == program.complete({"show", "--"}));
}

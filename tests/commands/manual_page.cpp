// bamtrain.1 and bamdata.1, which the build writes.

#include <cstdlib>
#include <sstream>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain::testing;

namespace {

/// Words with single blanks between them: lines are broken elsewhere than in --help.
std::string flowing(const std::string& text) {
  std::string out;
  std::istringstream words(text);
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

TEST_CASE("man shows all that --help says, without a warning") {
  if (run({"sh", "-c", "command -v groff"}).code != 0) {
    WARN("groff is not installed: not tested");
    return;
  }
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const std::string folder = build ? build : "build";
  for (const auto& [program, page] : std::vector<std::pair<std::string, std::string>>{
           {"/src/bamtrain", "/src/bamtrain.1"},
           {"/data_tools/bamdata", "/data_tools/bamdata.1"}}) {
    INFO(page);
    const std::string name = program.substr(program.rfind('/') + 1);
    CHECK(run({"groff", "-ww", "-man", "-Tutf8", "-z", folder + page}).output.empty());
    const Outcome shown = run({"groff", "-man", "-Tascii", "-P-cbou", folder + page});
    const std::string text = flowing(shown.output);
    const Outcome complete = run({folder + program, "--complete", ""});
    std::istringstream commands(complete.output);
    std::vector<std::vector<std::string>> calls = {{folder + program}};
    for (std::string line; std::getline(commands, line);) {
      calls.push_back({folder + program, line.substr(0, line.find('\t'))});
    }
    CHECK(calls.size() > 6);
    for (std::vector<std::string> call : calls) {
      call.emplace_back("--help");
      std::istringstream help(run(call).output);
      // The entries of commands, arguments and options, "  LABEL    TEXT" over several lines.
      std::string entry, title;
      int entries = 0;
      for (std::string line; std::getline(help, line);) {
        const bool begins = line.starts_with("  ") && !line.starts_with("   ");
        if (!entry.empty() && (begins || !line.starts_with("   "))) {
          const std::string lead = title == "Commands:" ? name + " " : "";
          INFO(call[1] << ": " << entry);
          CHECK(text.find(lead + flowing(entry)) != std::string::npos);
          ++entries;
          entry.clear();
        }
        if (begins || !entry.empty()) {
          entry += line + " ";
        } else if (!line.empty()) {
          title = line;
        }
      }
      CHECK(entries > 0);
    }
  }
}

TEST_CASE("bamtrain's manual page explains exit codes and signals") {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const std::string page = read_text(std::string(build ? build : "build") + "/src/bamtrain.1");
  CHECK(page.find(".SH \"EXIT CODES\"\n") != std::string::npos);
  CHECK(page.find(".TP\n\\fB85\\fR\nstopped by a signal") != std::string::npos);
  CHECK(page.find(".SS \"Signals\"\n") != std::string::npos);
}

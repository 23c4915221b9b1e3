// bamtrain help: the pages of docs/, embedded in the program.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "catch.h"
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
  for (const auto& [word, topic] : std::vector<std::pair<std::string, std::string>>{
           {"trian", "training"}, {"EXPORT", "export"}, {"exit_codes", "exit-codes"}}) {
    const Outcome o = run({bamtrain_program(), "help", word});
    INFO(o.output);
    CHECK(o.code == 2);
    CHECK(o.output.find("did you mean " + topic + "?\n") != std::string::npos);
  }
}

TEST_CASE("an unknown topic is refused with the list of topics") {
  const Outcome o = run({bamtrain_program(), "help", "horoscope"});
  CHECK(o.code == 2);
  CHECK(o.output.find("exit-codes") != std::string::npos);
  CHECK(o.output.find("horoscope") != std::string::npos);
  CHECK(o.output.find("did you mean") == std::string::npos);
}

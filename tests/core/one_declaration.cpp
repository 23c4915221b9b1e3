// A class in a namespace is declared in one header only. Two declarations would link silently, and
// one program would run the other's code. This test reads every header.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "catch.h"

TEST_CASE("no two headers declare the same class") {
  namespace fs = std::filesystem;
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  const std::regex opens("^namespace ([A-Za-z_:0-9]+) \\{");
  const std::regex declares("^(?:class|struct) (\\w+)(?: final)?(?: :.*)? \\{");
  std::map<std::string, std::string> header_of;
  for (const char* folder : {"src", "data_tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source) / folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream in(entry.path());
      std::string within;
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (std::regex_search(line, match, opens)) within = match[1];
        if (!std::regex_search(line, match, declares)) continue;
        const std::string name = within + "::" + match[1].str();
        const auto [it, first] = header_of.emplace(name, entry.path().string());
        INFO(name << " in " << it->second << " and " << entry.path().string());
        CHECK(first);
      }
    }
  }
  CHECK(header_of.size() > 200);
}

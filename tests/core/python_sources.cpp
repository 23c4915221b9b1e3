// Python files that no test runs must at least compile.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.h"

TEST_CASE("every Python file compiles") {
  namespace fs = std::filesystem;
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  // Not py_compile: it writes next to the sources.
  std::string command =
      "python3 -c 'import sys; [compile(open(f).read(), f, \"exec\") for f in sys.argv[1:]]'";
  int files = 0;
  for (const char* folder : {"scripts", "data_tools", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source) / folder)) {
      if (entry.path().extension() != ".py") continue;
      command += " '" + entry.path().string() + "'";
      ++files;
    }
  }
  CHECK(files > 30);
  CHECK(std::system(command.c_str()) == 0);
}

// Every planted fault of mutants.py is noticed by attention_mutant.cpp under the checker. The
// programs, one per mutant, lie in the folder $BAMTRAIN_MUTANTS; their names are in
// $BAMTRAIN_NAMES.

#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "catch.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE(value != nullptr);
  return value;
}

/// Whether the program ends with exit status 0, at its first failure.
bool passes(const std::string& mutant) {
  const std::string program = variable("BAMTRAIN_MUTANTS") + "/mutant_" + mutant;
  const int status = std::system(("'" + program + "' --abort > /dev/null 2>&1").c_str());
  const bool could_run =
      WIFEXITED(status) && WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127;
  INFO(program << " could not be run");
  REQUIRE(could_run);
  return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("every planted fault in the attention kernels is noticed") {
  REQUIRE(passes("original"));
  REQUIRE(passes("general_original"));
  std::istringstream names(variable("BAMTRAIN_NAMES"));
  int count = 0;
  for (std::string name; names >> name; ++count) {
    INFO(name);
    CHECK_FALSE(passes(name));
  }
  CHECK(count >= 10);
}

// Every planted fault of mutants.py is noticed under the checker, by attention_mutant.cpp or one
// beside it, and none is in the originals. The programs, one per mutant, lie in the folder
// $BAMTRAIN_MUTANTS; their names are in $BAMTRAIN_NAMES.

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
  std::istringstream names(variable("BAMTRAIN_NAMES"));
  int originals = 0, faults = 0;
  for (std::string name; names >> name;) {
    INFO(name);
    const bool original = name.ends_with("original");
    CHECK(passes(name) == original);
    ++(original ? originals : faults);
  }
  CHECK(originals >= 7);
  CHECK(faults >= 10);
}

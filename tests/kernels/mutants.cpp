// attention_mutant.cpp or a similar program detects every planted fault of mutants.py under the
// checker, and reports nothing in the originals. The programs, one per mutant, are in the folder
// $BAMTRAIN_MUTANTS; their names are in $BAMTRAIN_NAMES.

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE(value != nullptr);
  return value;
}

/// Runs a program up to its first failure. Returns its exit status, or -1.
int exit_status(const std::string& program) {
  const int status = std::system(("'" + program + "' --abort > /dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The programs' exit statuses. Runs as many at a time as there are processors.
std::vector<int> exit_statuses(const std::vector<std::string>& programs) {
  std::vector<int> found(programs.size());
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t n; (n = next++) < programs.size();) found[n] = exit_status(programs[n]);
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::thread& t : threads) t = std::thread(run);
  for (std::thread& t : threads) t.join();
  return found;
}

}  // namespace

TEST_CASE("every planted fault in the attention kernels is noticed") {
  std::istringstream names(variable("BAMTRAIN_NAMES"));
  std::vector<std::string> programs;
  for (std::string name; names >> name;) {
    programs.push_back(variable("BAMTRAIN_MUTANTS") + "/mutant_" + name);
  }
  const std::vector<int> statuses = exit_statuses(programs);
  int originals = 0, faults = 0;
  for (size_t n = 0; n < programs.size(); ++n) {
    INFO(programs[n]);
    const bool could_run = statuses[n] >= 0 && statuses[n] != 126 && statuses[n] != 127;
    CHECK(could_run);
    const bool original = programs[n].ends_with("original");
    CHECK((statuses[n] == 0) == original);
    ++(original ? originals : faults);
  }
  CHECK(originals >= 7);
  CHECK(faults >= 10);
}

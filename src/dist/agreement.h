#pragma once
// What every process of a run must have alike. Launchers can give each its own command line, and
// nodes their own files; the run would go on, with bits that are nobody's.

#include <string>
#include <vector>

#include "core/error.h"
#include "dist/communicator.h"

namespace bamtrain {

struct Fact {
  std::string name;   // what it is about, as errors name it: "train.steps"
  std::string value;  // compared to the byte
  ExitCode code;      // of the Error where it differs
  std::string remedy;
};

/// Collective. Error on the first rank whose facts are not rank 0's, about the first that differs
/// in the order of rank 0; the others wait for its abort() (dist/collective.h).
void require_agreement(Communicator& comm, const std::vector<Fact>& own);

}  // namespace bamtrain

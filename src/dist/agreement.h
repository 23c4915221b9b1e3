#pragma once
// Facts that all processes of a run must agree on. Launchers can give each process its own command
// line, and nodes can have different files. Unchecked, the ranks would silently train different
// models.

#include <string>
#include <vector>

#include "core/error.h"
#include "dist/communicator.h"

namespace bamtrain {

struct Fact {
  std::string name;   // name of the fact in errors, such as "train.steps"
  std::string value;  // compared byte by byte
  ExitCode code;      // of the Error if the values differ
  std::string remedy;
};

/// Collective. Throws Error on the first rank whose facts differ from those of rank 0, naming the
/// first difference in rank 0's order. The other ranks wait for its abort() (dist/collective.h).
void require_agreement(Communicator& comm, const std::vector<Fact>& own);

}  // namespace bamtrain

#pragma once
// bamtrain --config: a training run, and the evaluation at its end.

#include <string>
#include <vector>

#include "dist/communicator.h"

namespace bamtrain {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool dry_run = false;
};

/// Returns the exit code, the same on every rank.
int run_train(const TrainArguments& arguments, Communicator& comm);

}  // namespace bamtrain

#pragma once
// bamtrain train: a training run, and the evaluation at its end.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace bamtrain {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string resume;  // checkpoint.resume, after the overrides; empty: not given
  bool dry_run = false, print_config = false;
};

/// Adds the options of training to the program or its command. `config`: names of the option, and
/// of the argument, that give the configuration.
std::vector<CLI::Option*> add_training_options(CLI::App& app, TrainArguments& arguments,
                                               const std::string& config);

/// train.peer_timeout, read before the processes are connected. The default where the configuration
/// has an error, which is told once they are.
double peer_timeout_of(const TrainArguments& arguments);

/// Prints the configuration as the run would use it. Returns the exit code.
int print_config(const TrainArguments& arguments);

/// Returns the exit code, the same on every rank.
int run_train(const TrainArguments& arguments, Communicator& comm);

}  // namespace bamtrain

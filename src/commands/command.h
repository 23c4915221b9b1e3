#pragma once
// Subcommands of bamtrain. To add one: a function here, its file, one line in main.cpp.

#include <CLI/CLI.hpp>
#include <functional>

namespace bamtrain {

struct Command {
  CLI::App* app;             // its name and options
  std::function<int()> run;  // call after parsing; returns the exit code
};

Command eval_command(CLI::App& app);
Command export_command(CLI::App& app);
Command generate_command(CLI::App& app);
Command help_command(CLI::App& app);
Command inspect_command(CLI::App& app);
Command report_command(CLI::App& app);
Command study_command(CLI::App& app);

}  // namespace bamtrain

#pragma once
// For programs whose command line is CLI11's.

#include <string>

#include "core/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace bamtrain {

/// What CLI11 refuses, in the form of every error: Error (ExitCode::usage). Its remedy is "did you
/// mean --config?" where a word is nearly an option or a subcommand. `program` is what the user
/// calls it. REQUIRES: app.parse has thrown `refusal`, which asks for no help and no version.
Error usage_error(const std::string& program, const CLI::App& app, const CLI::ParseError& refusal);

}  // namespace bamtrain

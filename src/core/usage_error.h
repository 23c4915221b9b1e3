#pragma once
// For programs that use CLI11 for their command line.

#include <string>

#include "core/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace bamtrain {

/// Converts a CLI11 refusal to an Error (ExitCode::usage) of the usual form. Its remedy is "did you
/// mean --config?" if a word is close to an option or a subcommand. `program` is the name that the
/// user calls. REQUIRES: app.parse threw `refusal`, which is not a request for help or version.
Error usage_error(const std::string& program, const CLI::App& app, const CLI::ParseError& refusal);

}  // namespace bamtrain

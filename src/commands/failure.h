#pragma once
// Error reports of a run that ends early.

#include <exception>
#include <functional>
#include <string>

#include "core/error.h"
#include "dist/communicator.h"

namespace bamtrain {

/// Prints what ended the program, after all earlier output, and returns the exit code.
int report_failure(const std::exception& failure, const std::string& who);

/// Rank 0 reports why the run ends, and all ranks end with `code`. No rank ends earlier, because a
/// launcher that sees one rank's exit code kills the others.
int end_together(Communicator& comm, ExitCode code, const std::function<void()>& say);

}  // namespace bamtrain

#pragma once
// What a run that ends before its end says.

#include <exception>
#include <functional>
#include <string>

#include "core/error.h"
#include "dist/communicator.h"

namespace bamtrain {

/// Says what ended the program, below what was printed before, and returns the exit code.
int report_failure(const std::exception& failure, const std::string& who);

/// Rank 0 says why the run ends, and all end with `code`. No rank ends earlier: a launcher that
/// sees the exit code of one kills the others.
int end_together(Communicator& comm, ExitCode code, const std::function<void()>& say);

}  // namespace bamtrain

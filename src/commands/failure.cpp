#include "commands/failure.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/standard_output.h"

namespace bamtrain {

int report_failure(const std::exception& failure, const std::string& who) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  auto code = error ? error->code() : ExitCode::internal;
  std::string text = failure.what();
  if (!error && standard_output_failed()) {  // {fmt} throws an exception of its own then
    code = ExitCode::io;
    text = standard_output_error(0).what();
  }
  std::fflush(stdout);
  std::fputs(fmt::format("bamtrain: {}{}\n", who, text).c_str(), stderr);
  return static_cast<int>(code);
}

int end_together(Communicator& comm, ExitCode code, const std::function<void()>& say) {
  if (comm.rank() == 0) say();
  comm.barrier();
  return static_cast<int>(code);
}

}  // namespace bamtrain

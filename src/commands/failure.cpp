#include "commands/failure.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <system_error>

#include "core/standard_output.h"

namespace bamtrain {

namespace {

/// What the system refused to a library, as an Error; null where that is not what it is.
std::optional<Error> of_the_system(const std::exception& failure) {
  const auto* refused = dynamic_cast<const std::system_error*>(&failure);
  if (refused == nullptr || refused->code() != std::errc::resource_unavailable_try_again) {
    return std::nullopt;
  }
  return Error(ExitCode::device, "threads", "one more thread", failure.what(),
               "raise the limit of processes (ulimit -u, or the container's), or set "
               "OMP_NUM_THREADS lower");
}

}  // namespace

int report_failure(const std::exception& failure, const std::string& who) {
  const std::optional<Error> refused = of_the_system(failure);
  const auto* error = refused ? &*refused : dynamic_cast<const Error*>(&failure);
  auto code = error ? error->code() : ExitCode::internal;
  std::string text = error ? error->what() : failure.what();
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

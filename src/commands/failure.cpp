#include "commands/failure.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <optional>
#include <system_error>

#include "core/memory_limit.h"
#include "core/standard_output.h"
#include "core/thread_limit.h"
#include "core/utf8.h"

namespace bamtrain {

namespace {

/// An Error for a resource that the system refused to a library; nullopt for any other failure.
std::optional<Error> of_the_system(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return out_of_memory("the sizes of model and batch (--dry-run says what a run needs)");
  }
  const auto* refused = dynamic_cast<const std::system_error*>(&failure);
  if (refused == nullptr || refused->code() != std::errc::resource_unavailable_try_again) {
    return std::nullopt;
  }
  return Error::fault(
      ExitCode::device, "threads", std::string("cannot start a thread: ") + failure.what(),
      "raise the limit of " + limit_of_threads() + ", or set OMP_NUM_THREADS lower");
}

}  // namespace

int report_failure(const std::exception& failure, const std::string& who) {
  const std::optional<Error> refused = of_the_system(failure);
  const auto* error = refused ? &*refused : dynamic_cast<const Error*>(&failure);
  auto code = error ? error->code() : ExitCode::internal;
  std::string text = error ? error->what() : failure.what();
  if (!error && standard_output_failed()) {  // {fmt} then throws its own exception
    code = ExitCode::io;
    text = standard_output_error(0).what();
  }
  std::fflush(stdout);
  std::fputs(fmt::format("bamtrain: {}{}\n", who, printable(text)).c_str(), stderr);
  return static_cast<int>(code);
}

int end_together(Communicator& comm, ExitCode code, const std::function<void()>& say) {
  if (comm.rank() == 0) say();
  comm.barrier();
  return static_cast<int>(code);
}

}  // namespace bamtrain

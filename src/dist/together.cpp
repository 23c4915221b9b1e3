#include "dist/together.h"

#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "core/error.h"

namespace bamtrain {
namespace {

/// Throws `own`; a rank that has nothing of its own (null) waits for the others' abort().
[[noreturn]] void end_run(Communicator& comm, const std::exception_ptr& own) {
  // abort() makes the launcher send it to those who wait: here it is no wish to stop and resume.
  if (!own) {
    std::signal(SIGTERM, SIG_DFL);
    sigset_t terminate;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &terminate, nullptr);
  }
  comm.barrier();  // no rank ends the run before all know that it ends
  if (own) std::rethrow_exception(own);
  comm.barrier();  // a rank that throws never comes here
  throw Error(ExitCode::internal, "rank " + std::to_string(comm.rank()),
              "the end of the run by the rank that failed", "a run that goes on",
              "report this bug");
}

}  // namespace

void fail_together(Communicator& comm, const std::exception_ptr& failure) {
  end_run(comm, comm.rank() == 0 ? failure : nullptr);
}

void together(Communicator& comm, const std::function<void()>& f) {
  std::exception_ptr failure;
  std::string text;  // empty: no failure
  try {
    f();
  } catch (const std::exception& e) {
    failure = std::current_exception();
    text = std::string("failure: ") + e.what();
  }
  std::string first = text;
  auto length = static_cast<int64_t>(first.size());
  comm.broadcast(&length, sizeof length, 0);
  first.resize(static_cast<size_t>(length));
  comm.broadcast(first.data(), length, 0);
  const bool alike = !comm.any(text != first);
  if (alike && !failure) return;
  if (alike) fail_together(comm, failure);
  end_run(comm, failure);
}

void on_first_rank(Communicator& comm, const std::function<void()>& f) {
  together(comm, [&] {
    if (comm.rank() == 0) f();
  });
}

}  // namespace bamtrain

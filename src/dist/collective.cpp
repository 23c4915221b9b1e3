#include "dist/collective.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace bamtrain {
namespace {

/// Throws `own`; a rank without a failure of its own (null) waits for the others' abort().
[[noreturn]] void end_run(Communicator& comm, const std::exception_ptr& own) {
  // abort() makes the launcher send SIGTERM to the waiting ranks. Here it does not ask for a
  // checkpoint.
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
              "the failed rank to stop the run", "a run that continues", "report this bug");
}

/// `failure`, followed by the messages of other ranks if there are any.
std::exception_ptr with_others(const std::exception_ptr& failure, const std::string& different) {
  if (different.empty()) return failure;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return std::make_exception_ptr(e.with(different));
  } catch (const std::exception& e) {
    return std::make_exception_ptr(std::runtime_error(e.what() + ("\n" + different)));
  }
}

/// The text of `rank`, on all ranks; empty if that rank has none.
std::optional<std::string> text_of(Communicator& comm, int rank,
                                   const std::optional<std::string>& own) {
  int64_t length = own ? static_cast<int64_t>(own->size()) : -1;
  comm.broadcast(&length, sizeof length, rank);
  if (length < 0) return std::nullopt;
  std::string text = own.value_or("");
  text.resize(static_cast<size_t>(length));
  comm.broadcast(text.data(), length, rank);
  return text;
}

}  // namespace

void fail_on_all_ranks(Communicator& comm, const std::exception_ptr& failure) {
  end_run(comm, comm.rank() == 0 ? failure : nullptr);
}

void run_on_all_ranks(Communicator& comm, const std::function<void()>& f) {
  std::exception_ptr failure;
  std::optional<std::string> text;
  try {
    f();
  } catch (const std::exception& e) {
    failure = std::current_exception();
    text = e.what();
  }
  if (!comm.any(failure != nullptr)) return;
  int first = -1;         // the first rank that failed
  std::string of_first;   // its message
  std::string different;  // other messages
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::optional<std::string> theirs = text_of(comm, rank, text);
    if (!theirs) continue;
    if (first < 0) {
      first = rank;
      of_first = *theirs;
    } else if (*theirs != of_first) {
      different +=
          (different.empty() ? "" : "\n") + ("rank " + std::to_string(rank) + ": " + *theirs);
    }
  }
  end_run(comm, comm.rank() == first ? with_others(failure, different) : nullptr);
}

void run_on_rank_zero(Communicator& comm, const std::function<void()>& f) {
  run_on_all_ranks(comm, [&] {
    if (comm.rank() == 0) f();
  });
}

std::string different_names(Communicator& comm, const std::string& own) {
  std::vector<std::string> met;
  std::string text;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::string name = text_of(comm, rank, own).value();
    if (std::find(met.begin(), met.end(), name) != met.end()) continue;
    met.push_back(name);
    text += (text.empty() ? "" : ", ") + name + " (rank " + std::to_string(rank) + ")";
  }
  return met.size() > 1 ? text : "";
}

Peers peers_of(Communicator& comm, std::vector<int> partners) {
  return {comm.rank(),
          comm.size(),
          std::move(partners),
          [&comm](void* data, int64_t bytes, int root) { comm.broadcast(data, bytes, root); },
          [&comm](const std::function<void()>& f) { run_on_all_ranks(comm, f); },
          [watchdog = comm.watchdog()](std::function<void()> f) {
            if (watchdog != nullptr) watchdog->before_end(std::move(f));
          }};
}

}  // namespace bamtrain

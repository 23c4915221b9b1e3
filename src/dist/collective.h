#pragma once
// Work that all ranks do at the same time, with a single report of errors.
//
// main() prints the Error that reaches it and ends the processes of all ranks with
// Communicator::abort(). So a rank without an error of its own does not throw. It waits for that
// abort, with the default action of SIGTERM.

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace bamtrain {

/// Ends the run for a reason that all ranks have found: rank 0 throws `failure`, the others wait
/// for its abort(). Collective.
[[noreturn]] void fail_on_all_ranks(Communicator& comm, const std::exception_ptr& failure);

/// Runs `f` on every rank. If it fails, the first rank on which it fails throws that failure,
/// followed by the differing messages of other ranks ("rank 2: ..."). The others wait for its
/// abort(). Only one rank ends the run: when several abort at once, launchers have returned the
/// exit code of a rank that they killed. REQUIRES: `f` does not communicate.
void run_on_all_ranks(Communicator& comm, const std::function<void()>& f);

/// Runs `f` on rank 0. The others wait until it ends, or for abort() if it fails. REQUIRES: `f`
/// does not communicate.
void run_on_rank_zero(Communicator& comm, const std::function<void()>& f);

/// If ranks have different values of `own`: each value with the first rank that has it, "a (rank
/// 0), b (rank 3)". Empty if all are equal. Collective; the result is the same on all ranks.
std::string different_names(Communicator& comm, const std::string& own);

/// The communicator as links between devices use it, which exchange messages with `partners`. It
/// must outlive the result.
Peers peers_of(Communicator& comm, std::vector<int> partners);

}  // namespace bamtrain

#pragma once
// Work that all ranks do at the same time, with one report of its errors.
//
// main() prints the Error that reaches it and ends the processes of all ranks by
// Communicator::abort(). So a rank that has nothing of its own to report does not throw: it waits
// for that, with the default action of SIGTERM.

#include <exception>
#include <functional>
#include <string>

#include "dist/communicator.h"

namespace bamtrain {

/// Ends the run for a reason that every rank has found alike: rank 0 throws `failure`, the others
/// wait for its abort(). REQUIRES: all ranks call it.
[[noreturn]] void fail_on_all_ranks(Communicator& comm, const std::exception_ptr& failure);

/// Runs `f` on every rank. Where it fails, the first rank on which it does throws its failure, with
/// what other ranks say differently below it ("rank 2: ..."), and the others wait for its abort().
/// One rank alone ends the run: of several that abort at once, launchers have returned the code of
/// one that they killed. REQUIRES: `f` does not communicate.
void run_on_all_ranks(Communicator& comm, const std::function<void()>& f);

/// Runs `f` on rank 0; the others wait for its end, and for abort() where it fails.
/// REQUIRES: `f` does not communicate.
void run_on_rank_zero(Communicator& comm, const std::function<void()>& f);

/// Where processes call something of theirs by different names, each with the first rank that does:
/// "a (rank 0), b (rank 3)"; empty where it is one name. Collective; the same on all ranks.
std::string different_names(Communicator& comm, const std::string& own);

/// The communicator as links between devices see it; it must outlive them.
Peers peers_of(Communicator& comm);

}  // namespace bamtrain

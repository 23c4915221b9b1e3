#pragma once
// How threads wait for each other at the end of a piece of parallel work: they spin for a while,
// then sleep. On a core that another program wants, a thread that spins keeps from working the one
// that it waits for.

#include <string>

namespace bamtrain {

/// Bounds the spinning, by GOMP_SPINCOUNT, where the user has set neither that nor OMP_WAIT_POLICY.
/// The OpenMP runtime reads them when it is loaded, before main, and has no call that changes what
/// it read: the program starts itself anew, once, with the variable set. Process, arguments,
/// descriptors and signals stay as they are, and processes that this one starts inherit the
/// variable. Threads that are bound to cores (OMP_PROC_BIND, OMP_PLACES) wait as the runtime lets
/// them: the first is bound by now, and a program started from it would see that core alone.
/// Where the program cannot be started anew a warning on standard error says why; only speed
/// depends on it. REQUIRES: `argv` is main's, and main has done nothing that a second start would
/// repeat.
void limit_spinning(char** argv);

/// What the environment says of it, "GOMP_SPINCOUNT=300000"; empty where it says nothing, or where
/// one thread has no other to wait for.
std::string wait_policy_setting();

}  // namespace bamtrain

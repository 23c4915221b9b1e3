#pragma once
// How threads wait for each other at the end of a parallel region: they spin for a while, then
// sleep. If another program wants the core, a spinning thread can delay the one it waits for.

#include <string>

namespace bamtrain {

/// Bounds the spinning through GOMP_SPINCOUNT, unless the user has set that or OMP_WAIT_POLICY. The
/// OpenMP runtime reads both when it is loaded, before main, and has no call to change them. So the
/// program restarts itself once with the variable set. Process, arguments, descriptors and signals
/// stay the same; child processes inherit the variable. Threads bound to cores (OMP_PROC_BIND,
/// OMP_PLACES) keep the runtime's policy: the first is already bound, and a restarted program would
/// see only that core. If the restart fails, a warning on standard error says why; only speed
/// depends on it. REQUIRES: `argv` is main's, and main has done nothing that a restart would
/// repeat.
void limit_spinning(char** argv);

/// The environment's setting, "GOMP_SPINCOUNT=300000"; empty if unset, or if there is only one
/// thread.
std::string wait_policy_setting();

}  // namespace bamtrain

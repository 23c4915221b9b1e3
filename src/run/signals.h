#pragma once
// Stop requests: SIGUSR1 (the documented pre-emption signal, which mpirun forwards), SIGTERM,
// SIGINT, SIGHUP (a lost terminal; not if ignored, as under nohup) and a trigger file.
//
// No thread runs a handler. oneDNN's products use the stack pointer for other memory while they
// compute (its issue 4845), so a handler's frame would overwrite the heap. All threads block the
// signals, and one thread waits for them.

#include <cstdint>
#include <string>
#include <string_view>

namespace bamtrain {

/// Blocks the signals in the calling thread and all threads that it starts, and receives them in a
/// thread of its own. Until defer_stop_signals, a signal ends the process at once with
/// ExitCode::interrupted, whatever it is waiting for. Launchers such as mpirun then end the other
/// ranks. Call once, from main, before any other thread and before MPI starts. Throws Error
/// (ExitCode::distributed) as detect_launch. Ignores SIGPIPE, so that output without a reader is a
/// failed write instead of a silent end.
void take_stop_signals();

/// From now on there is work to lose, so a signal is only noted for stop_signalled. If `announced`,
/// as for the first process of a run, a SIGINT prints stopping_message at once. `next` is the step
/// that it names until stop_signalled_before. A second SIGINT ends the process at once, as users
/// expect; the steps since the last checkpoint are lost. Other signals before it do not count,
/// since batch systems and users each send their own.
void defer_stop_signals(int64_t next, bool announced);
/// "bamtrain: finishing step 9, then saving; Ctrl-C again quits at once\n"; step 0: no step is
/// left.
std::string stopping_message(int64_t step);

/// Nothing is left to save, but the run has not ended: signals end the process at once again.
void end_at_stop_signals();
/// The message in that case, one line.
inline constexpr std::string_view kStoppedLate =
    "bamtrain: interrupted after the last step; run the same command again\n";

/// Whether this process has noted a signal.
bool stop_signalled();
/// The same. If not, the run goes on with step `next`, and stops after it for a signal noted from
/// now on.
bool stop_signalled_before(int64_t next);

/// Whether `out_dir` holds the trigger file, a regular file named "stop". Removes it. Leaves
/// anything else of that name alone.
bool take_trigger_file(const std::string& out_dir);

}  // namespace bamtrain

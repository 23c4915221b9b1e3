#pragma once
// The wish to stop: SIGUSR1 (the documented pre-emption signal: mpirun forwards it), SIGTERM,
// SIGINT, SIGHUP (a lost terminal; not where it is ignored, as under nohup) and a trigger file.
//
// No thread runs a handler. oneDNN's products use the stack pointer for other memory while they
// compute (its issue 4845): the frame of a handler would be written over the heap. All threads
// block the signals, and one waits for them.

#include <string>
#include <string_view>

namespace bamtrain {

/// Blocks the signals in the calling thread and all that it will start, and takes them in a thread
/// of its own: until defer_stop_signals, one ends the process at once with ExitCode::interrupted,
/// whatever it is waiting for. Call once, from main, before any other thread and before MPI
/// starts. Launchers such as mpirun end the other ranks with one that ends so. Error
/// (ExitCode::distributed) as detect_launch. Ignores SIGPIPE: output that nobody reads any more is
/// a failed write, and no end without a word.
void take_stop_signals();

/// From here on there is something to lose: a signal is only noted, for stop_signalled. A second
/// SIGINT ends the process at once, as users expect; it loses the steps since the last checkpoint.
/// Other signals before it do not count: batch systems and users each send their own.
void defer_stop_signals();

/// Nothing is left to save, but the run has not ended: signals end the process at once again.
void end_at_stop_signals();
/// What is said then, a line.
inline constexpr std::string_view kStoppedLate =
    "bamtrain: stopped by a signal after the last step; run the same command again\n";

/// Whether a signal has been noted in this process.
bool stop_signalled();

/// Whether `out_dir` holds the trigger file, a regular file named "stop", which is thereby removed.
/// Anything else of that name is left alone.
bool take_trigger_file(const std::string& out_dir);

}  // namespace bamtrain

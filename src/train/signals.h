#pragma once
// The wish to stop: SIGUSR1 (the documented pre-emption signal: mpirun forwards it), SIGTERM,
// SIGINT and a trigger file. A second SIGINT ends the process at once, as users expect.

#include <string>

namespace bamtrain {

/// Installs the handlers. Call once, from main.
void install_signal_handlers();

/// Signals end the process again, as they do by default: once nothing is left to save.
void restore_signal_handlers();

/// Whether a signal has arrived in this process.
bool stop_signalled();

/// The file in the run's folder whose appearance asks for a stop; it is removed when obeyed.
std::string trigger_file(const std::string& out_dir);

}  // namespace bamtrain

#pragma once
// Standard output is a file like any other: printed text must have arrived.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "core/error.h"
#include "core/utf8.h"

namespace bamtrain {

/// Opens /dev/null for each closed standard descriptor. A file that was opened there would receive
/// the program's output. Returns false on failure.
inline bool open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDWR) != descriptor) return false;
  }
  return true;
}

/// Whether any output so far did not reach standard output.
inline bool standard_output_failed() { return std::ferror(stdout) != 0 || !std::cout.good(); }

/// The Error (ExitCode::io) for this; `reason` is an errno value, 0 if no longer known.
inline Error standard_output_error(int reason) {
  return Error::fault(
      ExitCode::io, "standard output",
      std::string("write failed") + (reason != 0 ? std::string(": ") + std::strerror(reason) : ""),
      "free some space, or redirect it elsewhere");
}

/// Flushes everything printed so far to the system. Throws Error (ExitCode::io) if that fails or an
/// earlier write failed.
inline void flush_standard_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0 || standard_output_failed()) throw standard_output_error(errno);
}

/// Prints status that no result depends on, such as a run's progress, unescaped: it may move a
/// terminal's cursor. If standard output fails (reader gone, terminal lost, disk full), says so
/// once on standard error and drops everything printed from then on.
inline void print_status_unescaped(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return;
  }
  const std::string reason = std::strerror(errno);
  std::fputs(("bamtrain: standard output: write failed (" + reason +
              "); the run continues, and metrics.jsonl has its progress\n")
                 .c_str(),
             stderr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw standard_output_error(errno);
}

/// The same for text that may hold names from elsewhere (printable, core/utf8.h).
inline void print_status(const std::string& text) { print_status_unescaped(printable(text)); }

}  // namespace bamtrain

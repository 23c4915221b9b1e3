#pragma once
// Messages of threads that must not wait for a reader.

#include <poll.h>
#include <unistd.h>

#include <string>

namespace bamtrain {

/// Writes to standard error, unless its reader is behind: then the text is lost.
inline void print_at_once(const std::string& text) {
  pollfd reader = {STDERR_FILENO, POLLOUT, 0};
  if (::poll(&reader, 1, 0) != 1 || (reader.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace bamtrain

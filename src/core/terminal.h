#pragma once
// The terminal that shows a process's output.

#include <cstddef>

namespace bamtrain {

/// Whether the environment lets a program move a terminal's cursor: TERM names a capable terminal
/// (not "dumb"), and NO_COLOR, which asks for plain text, is unset or empty.
bool environment_allows_controls();

/// The terminal of the session that shows a descriptor's output. mpirun gives rank 0 a
/// pseudoterminal and copies its output. That one is replaced by mpirun's own output, which may be
/// a file.
class Terminal {
 public:
  /// Looks once. `descriptor` must stay open as long as this object.
  explicit Terminal(int descriptor);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Whether there is a terminal whose lines may be rewritten.
  bool live() const { return live_; }
  /// The current number of columns; 80 if unknown. REQUIRES: live().
  size_t columns() const;

 private:
  int descriptor_;  // of the terminal, if there is one
  bool opened_here_ = false;
  bool live_ = false;
};

}  // namespace bamtrain

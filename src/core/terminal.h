#pragma once
// The terminal on which a process's output appears.

#include <cstddef>

namespace bamtrain {

/// Whether the environment lets a program move the cursor of a terminal: TERM names one that can
/// ("dumb" cannot), and NO_COLOR, which asks for plain text, is absent or empty.
bool environment_allows_controls();

/// Where a process looks at the output of a descriptor: the terminal of its session. mpirun gives
/// rank 0 a terminal of its own making and copies what arrives there; that one stands for the place
/// that mpirun itself writes to, which may be a file.
class Terminal {
 public:
  /// Looks once. `descriptor` stays open as long as this.
  explicit Terminal(int descriptor);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// There is one, and lines on it may be written anew.
  bool live() const { return live_; }
  /// Its columns now; 80 where it does not tell. REQUIRES: live().
  size_t columns() const;

 private:
  int descriptor_;  // of the terminal, where there is one
  bool opened_here_ = false;
  bool live_ = false;
};

}  // namespace bamtrain

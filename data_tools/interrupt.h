#pragma once
// Ctrl-C and its relatives, turned into an exception, so that destructors clean up.

namespace bamtrain {

/// Thrown by check_interrupt(); main() ends the process by the same signal after the clean-up.
struct Interrupted {
  int signal;
};

/// While one exists, SIGINT, SIGTERM and SIGHUP only set a flag (and end a blocked read); the
/// former handlers return with its end. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Throws Interrupted where a signal came since the InterruptGuard began.
void check_interrupt();

}  // namespace bamtrain

#pragma once
// Ctrl-C and its relatives, turned into an exception, so that destructors clean up.

namespace bamtrain {

/// Thrown by check_interrupt(); main() ends the process by the same signal after the clean-up.
struct Interrupted {
  int signal;
  bool kept = false;  // what was done stays, for another process to go on
};

/// While one exists, SIGINT, SIGTERM and SIGHUP wait for the calls below; the former handlers
/// return with its end. One at a time, and the calls from its thread; threads that are begun
/// meanwhile inherit that these signals are blocked.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Throws Interrupted where a signal came since the InterruptGuard began; nothing without one.
void check_interrupt();

/// Waits until read(2) on the descriptor will not block; returns at once without an InterruptGuard.
/// Throws Interrupted for a signal that came before or comes meanwhile: none slips in between.
void wait_for_input(int descriptor);

}  // namespace bamtrain

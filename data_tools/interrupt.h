#pragma once
// Turns Ctrl-C and similar signals into an exception, so that destructors clean up.

namespace bamtrain {

/// Thrown by check_interrupt(); after the clean-up main() ends the process with the same signal.
struct Interrupted {
  int signal;
  bool kept = false;  // progress is kept; another process can resume
};

/// While a guard exists, SIGINT, SIGTERM and SIGHUP are deferred to the calls below; its end
/// restores the former handlers. REQUIRES: one guard at a time, and calls only from its thread.
/// Threads started meanwhile inherit the blocked signals.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Throws Interrupted if a signal has arrived since the InterruptGuard began; does nothing without
/// a guard.
void check_interrupt();

/// Waits until read(2) on the descriptor will not block; returns at once without an InterruptGuard.
/// Throws Interrupted for a signal that arrived before or arrives meanwhile; no signal is lost in
/// between.
void wait_for_input(int descriptor);

}  // namespace bamtrain

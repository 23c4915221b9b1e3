#pragma once
// Threads that receive no signals.

#include <pthread.h>
#include <signal.h>

namespace bamtrain {

/// Blocks all signals on this thread until destruction. Threads started meanwhile never receive
/// any: signals go to the caller's thread, where they interrupt a blocked read.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t former_;
};

}  // namespace bamtrain

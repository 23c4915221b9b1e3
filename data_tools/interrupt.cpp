#include "data_tools/interrupt.h"

#include <poll.h>
#include <signal.h>

#include <array>
#include <cstddef>

namespace bamtrain {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t arrived = 0;
bool guarded = false;
std::array<struct sigaction, kSignals.size()> former;
sigset_t former_mask;

extern "C" void bamdata_note_signal(int signal) { arrived = signal; }

void throw_if_arrived() {
  if (arrived != 0) throw Interrupted{arrived, false};
}

}  // namespace

InterruptGuard::InterruptGuard() {
  arrived = 0;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int signal : kSignals) sigaddset(&blocked, signal);
  pthread_sigmask(SIG_BLOCK, &blocked, &former_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = bamdata_note_signal;
    sigaction(kSignals[i], nullptr, &former[i]);
    if (former[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
  guarded = true;
}

InterruptGuard::~InterruptGuard() {
  guarded = false;
  pthread_sigmask(SIG_SETMASK, &former_mask, nullptr);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &former[i], nullptr);
}

void check_interrupt() {
  if (!guarded) return;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, &former_mask, &blocked);  // pending signals arrive here
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  throw_if_arrived();
}

void wait_for_input(int descriptor) {
  if (!guarded) return;
  check_interrupt();
  pollfd input = {descriptor, POLLIN, 0};
  // The same call unblocks signals and waits. read(2) reports any other outcome.
  ::ppoll(&input, 1, nullptr, &former_mask);
  throw_if_arrived();
}

}  // namespace bamtrain

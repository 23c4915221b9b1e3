#include "data_tools/interrupt.h"

#include <signal.h>

#include <array>
#include <cstddef>

namespace bamtrain {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t arrived = 0;
std::array<struct sigaction, kSignals.size()> former;

extern "C" void bamdata_note_signal(int signal) { arrived = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  arrived = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = bamdata_note_signal;  // without SA_RESTART: a blocked read returns
    sigaction(kSignals[i], nullptr, &former[i]);
    if (former[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &former[i], nullptr);
}

void check_interrupt() {
  if (arrived != 0) throw Interrupted{arrived};
}

}  // namespace bamtrain

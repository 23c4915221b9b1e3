#include "train/signals.h"

#include <csignal>

namespace bamtrain {

namespace {

volatile std::sig_atomic_t g_stop = 0;

void on_signal(int signal) {
  if (signal == SIGINT && g_stop) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  g_stop = 1;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

void restore_signal_handlers() {
  for (int signal : {SIGUSR1, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
}

bool stop_signalled() { return g_stop != 0; }

std::string trigger_file(const std::string& out_dir) { return out_dir + "/stop"; }

}  // namespace bamtrain

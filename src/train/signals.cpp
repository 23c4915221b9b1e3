#include "train/signals.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/error.h"
#include "dist/launch.h"

namespace bamtrain {

namespace {

constexpr char kEarly[] =
    "bamtrain: stopped by a signal before the first step; run the same command again\n";

volatile std::sig_atomic_t g_announced = 0;
volatile std::sig_atomic_t g_deferred = 0;
volatile std::sig_atomic_t g_stop = 0;

void on_signal(int signal) {
  if (!g_deferred) {
    if (g_announced) {
      // A message that cannot be written is lost: there is nobody to tell.
      [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kEarly, sizeof kEarly - 1);
    }
    ::_exit(static_cast<int>(ExitCode::interrupted));
  }
  if (signal == SIGINT && g_stop) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  g_stop = 1;
}

}  // namespace

void install_signal_handlers() {
  // One of several processes leaves it to the launcher to say so, once.
  g_announced = !detect_launch().parallel();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

void defer_stop_signals() { g_deferred = 1; }

void restore_signal_handlers() {
  for (int signal : {SIGUSR1, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
}

bool stop_signalled() { return g_stop != 0; }

bool take_trigger_file(const std::string& out_dir) {
  namespace fs = std::filesystem;
  const fs::path path = out_dir + "/stop";
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path, ignored)) && fs::remove(path, ignored);
}

}  // namespace bamtrain

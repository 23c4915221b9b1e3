#include "run/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/print_at_once.h"
#include "dist/launch.h"

namespace bamtrain {

namespace {

constexpr std::string_view kEarly =
    "bamtrain: interrupted before the first step; run the same command again\n";

enum class Obey { before_steps, noted, after_steps };
std::atomic<Obey> g_obey = Obey::before_steps;
// The step after which a noted signal stops the run, and in the lowest bit whether one was noted.
// One number, so that the message names the step at which the run really stops.
constexpr uint64_t kNoted = 1;
std::atomic<uint64_t> g_stop = 0;
std::atomic<bool> g_announced = false;
bool g_interrupted = false;  // whether a SIGINT was noted; used only by the waiting thread

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaddset(&set, signal);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

/// Ends the process by the signal's default action.
void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

void announce_stop(int64_t step) {
  // A terminal shows ^C after the live line.
  print_at_once((isatty(STDERR_FILENO) ? "\n" : "") + stopping_message(step));
}

void obey(int signal, bool announced) {
  const Obey how = g_obey;
  if (how == Obey::noted) {
    if (signal == SIGINT && g_interrupted) die_of(signal);
    const uint64_t before = g_stop.fetch_or(kNoted);
    if (signal == SIGINT && !g_interrupted && g_announced) {
      announce_stop(static_cast<int64_t>(before >> 1));
    }
    g_interrupted |= signal == SIGINT;
    return;
  }
  if (announced) {
    const std::string_view text = how == Obey::before_steps ? kEarly : kStoppedLate;
    // If the message cannot be written, there is nobody to tell.
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
  }
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace

void take_stop_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  // With several processes, the launcher reports it, once.
  const bool announced = !detect_launch().parallel();
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set, announced] {
    int signal = 0;
    while (sigwait(&set, &signal) == 0) obey(signal, announced);
  }).detach();
}

void defer_stop_signals(int64_t next, bool announced) {
  g_stop = static_cast<uint64_t>(next) << 1;
  g_announced = announced;
  g_obey = Obey::noted;
}

std::string stopping_message(int64_t step) {
  const std::string work = step > 0 ? "step " + std::to_string(step) + ", then saving" : "the run";
  return "bamtrain: finishing " + work + "; Ctrl-C again quits at once\n";
}

void end_at_stop_signals() { g_obey = Obey::after_steps; }

bool stop_signalled() { return (g_stop & kNoted) != 0; }

bool stop_signalled_before(int64_t next) {
  uint64_t before = g_stop;
  while ((before & kNoted) == 0) {
    if (g_stop.compare_exchange_weak(before, static_cast<uint64_t>(next) << 1)) return false;
  }
  return true;
}

bool take_trigger_file(const std::string& out_dir) {
  namespace fs = std::filesystem;
  const fs::path path = out_dir + "/stop";
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path, ignored)) && fs::remove(path, ignored);
}

}  // namespace bamtrain

#include "study/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/append_file.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/folder_lock.h"
#include "core/input_file.h"
#include "core/parallel.h"
#include "core/standard_output.h"
#include "dist/launch.h"
#include "record/results.h"
#include "study/table.h"

namespace bamtrain {

namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// Whether the signal is ignored, as nohup does with SIGHUP.
bool is_ignored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Blocks SIGCHLD and the stop signals that are not ignored, until wait() takes them.
class AwaitedSignals {
 public:
  AwaitedSignals() {
    sigemptyset(&set_);
    for (const int s : kStopSignals) {
      if (!is_ignored(s)) sigaddset(&set_, s);
    }
    sigaddset(&set_, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;
  ~AwaitedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }
  int wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_ = {}, before_ = {};
};

pid_t forked(const std::string& what) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child >= 0) return child;
  throw system_error(ExitCode::io, what, "start a process", errno,
                     "end other processes, and run the same command again");
}

/// Exits a child whose parent died before the child requested a signal for that.
void end_without(pid_t parent) {
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::interrupted));
}

/// Starts a process of this program that trains the run; it shares the lock of the run's folder.
/// `gpu`: the only GPU it sees; empty: all.
pid_t start_training(const std::string& config, const std::string& log, const FolderLock& lock,
                     const std::string& gpu, int threads, const sigset_t& mask) {
  const int output = open_to_append(log, "remove it, or change the study's out_dir");
  const std::string thread_count = std::to_string(threads);
  const pid_t parent = ::getpid(), child = forked(config);
  if (child > 0) {
    ::close(output);
    return child;
  }
  // Signals of the terminal go only to the study, which forwards them once.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  end_without(parent);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  lock.leave_to_program();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  leave_launch();
  if (threads > 0) ::setenv("OMP_NUM_THREADS", thread_count.c_str(), 1);
  if (!gpu.empty()) ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), 1);
  ::execl("/proc/self/exe", "bamtrain", "--config", config.c_str(), static_cast<char*>(nullptr));
  ::_exit(static_cast<int>(ExitCode::io));
}

/// Starts a process that ends when nobody holds the lock of the folder any more.
pid_t start_waiting(const std::string& folder) {
  const std::string path = folder + "/" + FolderLock::kName;
  const pid_t parent = ::getpid(), child = forked(folder);
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  end_without(parent);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);  // including the parent's locks
  const int lock = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  while (lock >= 0 && ::flock(lock, LOCK_SH) != 0 && errno == EINTR) {
  }
  ::_exit(0);
}

int64_t size_of_log(const std::string& path) {
  std::error_code ignored;
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : static_cast<int64_t>(bytes);
}

/// The last line of bamtrain's own after `begin`, else the last non-empty line, or why there is
/// none. Libraries may print after it when the process ends.
std::string last_line(const std::string& path, int64_t begin) try {
  constexpr int64_t kEnd = 4096;
  const InputFile file(path, ExitCode::io, "restore it");
  const int64_t bytes = std::clamp<int64_t>(file.bytes() - begin, 0, kEnd);
  std::string text(static_cast<size_t>(bytes), '\0');
  file.read(file.bytes() - bytes, text.data(), bytes);
  text.insert(0, "\n");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  constexpr std::string_view kOwn = "\nbamtrain: ";
  const size_t own = text.rfind(kOwn);
  if (own == std::string::npos) return text.substr(text.find_last_of("\n\r") + 1);
  text.erase(0, own + 1);
  return text.substr(0, text.find('\n'));
} catch (const Error& e) {
  return e.what();
}

class Runner {
 public:
  Runner(const Study& study, const std::vector<StudyRun>& runs, const RunnerSettings& settings,
         const std::function<void()>& changed)
      : study_(study), runs_(runs), settings_(settings), changed_(changed) {
    for (int j = settings.jobs; j > 0; --j) free_slots_.push_back(j - 1);
    for (const StudyRun& run : runs) waiting_.push_back(&run);
  }

  RunnerResult run() {
    tell_changed();
    while (true) {
      while (!stopping_ && !free_slots_.empty() && start_next()) {
      }
      if (!stopping_ && waiting_.empty()) wait_for_others();
      if (children_.empty()) break;
      const int signal = signals_.wait();
      if (signal != SIGCHLD) stop();
      int status = 0;
      for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) ended(pid, status);
    }
    count_again();
    changed_();
    result_.interrupted = stopping_;
    return result_;
  }

 private:
  static constexpr int kNoSlot = -1;
  struct Child {
    const StudyRun* run;
    int slot;  // kNoSlot: it waits for the run of another process
    /// Held with the child until its outcome is recorded, so that a waiting process finds the
    /// record.
    std::unique_ptr<FolderLock> lock;
    int64_t log_begin;  // bytes of the log written by earlier attempts
    bool waits() const { return slot == kNoSlot; }
  };

  static void say(const std::string& text) { print_status(text + "\n"); }

  /// Starts a process for the next run that needs one; returns false if none does.
  bool start_next() {
    while (!waiting_.empty()) {
      const StudyRun& run = *waiting_.front();
      waiting_.erase(waiting_.begin());
      try {
        if (start(run)) return true;
      } catch (const Error& e) {
        failed(run, static_cast<int>(e.code()), e.what());
      }
    }
    return false;
  }

  /// Returns false if the run needs no process, or another process has it.
  bool start(const StudyRun& run) {
    if (is_over(run, state_of(study_, run))) return false;
    make_folders(run.folder);
    std::unique_ptr<FolderLock> lock = FolderLock::unless_held(run.folder);
    if (!lock) {
      say(run.label + ": another process is training it, waiting");
      held_.push_back(&run);
      return false;
    }
    const RunState state = state_of(study_, run);  // final now that the lock is held
    if (is_over(run, state)) return false;
    const std::string config = config_file(study_, run), log = log_file(study_, run);
    make_folders(parent_folder(config));
    make_folders(parent_folder(log));
    AtomicFile file(config);
    file.write(nlohmann::ordered_json(run.resolved).dump(2) + "\n");
    file.commit();
    say(fmt::format("{}: {} (log: {})", run.label,
                    state.step > 0 ? fmt::format("resuming from step {}", state.step) : "starting",
                    log));
    const int slot = free_slots_.back();
    const auto place = static_cast<size_t>(slot);
    const std::string gpu = place < settings_.gpus.size() ? settings_.gpus[place] : "";
    const int threads = settings_.jobs > 1 ? std::max(1, max_threads() / settings_.jobs) : 0;
    const int64_t log_begin = size_of_log(log);
    const pid_t child = start_training(config, log, *lock, gpu, threads, signals_.before());
    children_[child] = {&run, slot, std::move(lock), log_begin};
    free_slots_.pop_back();
    return true;
  }

  /// Whether there is nothing to train; if so, counts the run.
  bool is_over(const StudyRun& run, const RunState& state) {
    switch (state.kind) {
      case RunState::Kind::done:
      case RunState::Kind::diverged:
        over_.push_back({&run, state.kind});
        return true;
      case RunState::Kind::other:
      case RunState::Kind::damaged:
        failed(run, static_cast<int>(state.code), state.message);
        return true;
      default:
        return false;
    }
  }

  void failed(const StudyRun& run, int code, const std::string& why) {
    if (result_.failed == 0) result_.exit_code = code;
    ++result_.failed;
    say(fmt::format("{}: failed ({}): {}", run.label, code, why));
  }

  static bool has_results(const StudyRun& run) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(run.folder + "/" + kResultsFile, ignored);
  }

  /// Counts finished runs from the disk: a folder may have been removed since.
  void count_again() {
    for (const auto& [run, kind] : over_) {
      const RunState now = state_of(study_, *run);
      if (now.kind == kind) {
        ++(kind == RunState::Kind::done ? result_.done : result_.diverged);
      } else if (now.kind == RunState::Kind::damaged) {
        failed(*run, static_cast<int>(now.code), now.message);
      } else {
        failed(*run, static_cast<int>(ExitCode::io),
               fmt::format("it had {}, but {} is gone: restore it, or run the same command again "
                           "to train it again",
                           kind == RunState::Kind::done ? "finished" : "diverged",
                           kind == RunState::Kind::done ? run->folder + "/" + kResultsFile
                                                        : "the note of it"));
      }
    }
  }

  /// Waits for runs that other processes train, when there is nothing else to do.
  void wait_for_others() {
    for (const StudyRun* const run : held_)
      children_[start_waiting(run->folder)] = {run, kNoSlot, nullptr, 0};
    held_.clear();
  }

  void ended(pid_t pid, int status) {
    const auto found = children_.find(pid);
    if (found == children_.end()) return;
    const Child child = std::move(found->second);
    children_.erase(found);
    if (child.waits()) {  // the run may be done now
      waiting_.push_back(child.run);
      return;
    }
    free_slots_.push_back(child.slot);
    const StudyRun& run = *child.run;
    const int killed = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    // Usually by the system, for lack of memory.
    const int code = killed != 0 ? static_cast<int>(ExitCode::device) : WEXITSTATUS(status);
    const auto said = [&] { return last_line(log_file(study_, run), child.log_begin); };
    const RunState::Kind now = code == 0 ? state_of(study_, run).kind : RunState::Kind::begun;
    if (now == RunState::Kind::done) {
      over_.push_back({&run, RunState::Kind::done});
      say(run.label + ": done" + measured(run));
    } else if (stopping_) {
      say(run.label + ": stopped");
    } else if (code == static_cast<int>(ExitCode::nonfinite)) {
      over_.push_back({&run, RunState::Kind::diverged});
      const std::string why = said();
      record_diverged(study_, run, why);
      say(run.label + ": diverged: " + why);
    } else if (killed != 0) {
      failed(run, code,
             fmt::format("killed by signal {}, perhaps for lack of memory: run the same command "
                         "again, with fewer --jobs if so",
                         killed));
    } else if (code == 0 && (now == RunState::Kind::damaged || !has_results(run))) {
      over_.push_back({&run, RunState::Kind::done});  // count_again() reports what is missing
    } else if (code == 0) {
      failed(run, static_cast<int>(ExitCode::internal),
             "it ended without all its measurements (see its log): remove " + run.folder +
                 " to train it again");
    } else {
      failed(run, code, said());
    }
    tell_changed();
  }

  void tell_changed() {
    try {
      changed_();
    } catch (const Error& e) {  // the next call may succeed
      say(e.what());
    }
  }

  /// ", copy@64/exact_match 100.0, ...": the first few metrics that the study measures.
  std::string measured(const StudyRun& run) const {
    constexpr size_t kMost = 4;
    const StudyTable table = table_of(study_, {run});
    std::string out;
    size_t n = 0;
    for (const TableGroup& g : table.groups) {
      for (size_t c = 0; c < g.metrics.size() && n < kMost; ++c, ++n) {
        const auto& cell = table.rows[0].cells[static_cast<size_t>(&g - table.groups.data())][c];
        if (cell) out += ", " + g.metrics[c] + " " + value_text(g.number, cell->sample.mean);
      }
    }
    return out;
  }

  void stop() {
    say(stopping_ ? "killing the runs; steps since their last checkpoint are lost"
                  : "stopping: runs save a checkpoint and exit");
    for (const auto& [pid, child] : children_) {
      ::kill(pid, stopping_ || child.waits() ? SIGKILL : SIGTERM);
    }
    stopping_ = true;
  }

  const Study& study_;
  const std::vector<StudyRun>& runs_;
  const RunnerSettings& settings_;
  const std::function<void()>& changed_;
  AwaitedSignals signals_;
  std::vector<const StudyRun*> waiting_;                          // in order
  std::vector<const StudyRun*> held_;                             // by other processes
  std::vector<std::pair<const StudyRun*, RunState::Kind>> over_;  // done or diverged
  std::vector<int> free_slots_;
  std::map<pid_t, Child> children_;
  bool stopping_ = false;
  RunnerResult result_;
};

}  // namespace

RunnerResult run_study(const Study& study, const std::vector<StudyRun>& runs,
                       const RunnerSettings& settings, const std::function<void()>& changed) {
  return Runner(study, runs, settings, changed).run();
}

}  // namespace bamtrain

#include "data/shard_check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/sha256.h"
#include "core/signals_blocked.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kCheckBytes = int64_t{1} << 20;
constexpr double kRest = 3;                 // multiple of the time that the last read took
constexpr double kPieceSeconds = 1.0 / 64;  // minimum time from one read to the next

/// Lowers this thread to idle CPU and I/O priority. If the system refuses, others lose time;
/// results stay correct.
void stay_behind() {
  const sched_param none = {};
  ::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &none);
#ifdef SYS_ioprio_set
  constexpr int kThisThread = 1, kIdleClass = 3 << 13;  // ioprio_set(2) has no header
  ::syscall(SYS_ioprio_set, kThisThread, 0, kIdleClass);
#endif
}

}  // namespace

ShardCheck::ShardCheck(std::vector<std::shared_ptr<const ShardSet>> sets, int part, int parts,
                       int64_t turn)
    : sets_(std::move(sets)) {
  require(part >= 0 && part < parts, "one of the parts");
  for (const auto& set : sets_) {
    if (!set->manifest()) continue;
    std::map<std::string_view, const std::string*> sha256;  // by name; lists all shards
    for (const Manifest::ShardEntry& e : set->manifest()->shards) sha256[e.file] = &e.sha256;
    for (int64_t i = 0; i < set->size(); ++i) {
      if (shards_++ % parts != part) continue;
      const Shard& shard = set->shard(i);
      jobs_.push_back({&shard, sha256.at(std::filesystem::path(shard.path()).filename().string())});
    }
  }
  if (jobs_.empty()) {
    state_ = State::passed;
    return;
  }
  // Scatter the start: turns may be multiples of the number of shards.
  const auto n = static_cast<uint64_t>(jobs_.size());
  const uint64_t first = static_cast<uint64_t>(turn) * 0x9E3779B97F4A7C15u % n;
  std::rotate(jobs_.begin(), jobs_.begin() + static_cast<int64_t>(first), jobs_.end());
  piece_.resize(static_cast<size_t>(kCheckBytes));
}

ShardCheck::~ShardCheck() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ShardCheck::start() {
  require(!thread_.joinable(), "one start");
  if (jobs_.empty()) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

void ShardCheck::require_good() const {
  if (state_ == State::failed) std::rethrow_exception(failure_);
}

void ShardCheck::run() {
  stay_behind();
  try {
    for (const Job& job : jobs_) {
      if (!compare(job)) return;
    }
    state_ = State::passed;
  } catch (...) {
    failure_ = std::current_exception();
    state_ = State::failed;
  }
}

/// Returns false if the check was stopped.
bool ShardCheck::compare(const Job& job) {
  Sha256 digest;
  const int64_t bytes = job.shard->file_bytes();
  for (int64_t offset = 0; offset < bytes; offset += kCheckBytes) {
    if (!rest()) return false;
    const Clock::time_point begun = Clock::now();
    const int64_t n = std::min(bytes - offset, kCheckBytes);
    job.shard->read_file(offset, n, piece_.data());
    digest.update(piece_.data(), static_cast<size_t>(n));
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    rest_ = std::max(kRest * seconds, kPieceSeconds - seconds);
  }
  const std::string found = digest.hex();
  if (found == *job.sha256) return true;
  throw Error(ExitCode::data, job.shard->path(), "SHA-256 " + *job.sha256 + ", as in its manifest",
              found,
              "fetch or make the shard again, and resume from a checkpoint before it was read "
              "(bamdata verify checks the others; data.verify=false trains without checks)");
}

/// Returns false if the check was stopped.
bool ShardCheck::rest() {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::duration<double>(rest_), [this] { return stop_; });
}

}  // namespace bamtrain

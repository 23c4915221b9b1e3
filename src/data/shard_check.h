#pragma once
// Verifies shards against their manifests while a run trains on them.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/shard_set.h"

namespace bamtrain {

/// Compares the SHA-256 of each shard with its manifest, once, in a low-priority thread. Where the
/// system supports it, the thread uses idle CPU and I/O scheduling. It reads at most 64 MiB/s and
/// sleeps three times as long as each read took, so it asks for at most a quarter of the disk's
/// throughput.
class ShardCheck {
 public:
  /// Checks the shards of these sets that have a manifest. Of those, this process takes every
  /// `parts`-th from number `part` on, so that `parts` processes check different shards. `turn`
  /// chooses the shard to start with: a run that starts often and ends early still covers all in
  /// time. REQUIRES: 0 <= part < parts.
  ShardCheck(std::vector<std::shared_ptr<const ShardSet>> sets, int part, int parts, int64_t turn);
  /// Stops the thread after its current read.
  ~ShardCheck();
  ShardCheck(const ShardCheck&) = delete;
  ShardCheck& operator=(const ShardCheck&) = delete;

  /// Number of shards with a manifest, over all parts.
  int64_t shards() const { return shards_; }
  /// Starts the thread. Throws std::system_error if it cannot start. REQUIRES: called once.
  void start();
  /// Whether all shards of this part match their manifests.
  bool passed() const { return state_ == State::passed; }
  /// Throws what the thread found: Error (ExitCode::data) with both digests if a shard's differs,
  /// or an error of Shard::read_file. Never waits.
  void require_good() const;

 private:
  enum class State { under_way, passed, failed };
  struct Job {
    const Shard* shard;
    const std::string* sha256;  // from the manifest
  };

  void run();
  bool compare(const Job& job);
  bool rest();

  std::vector<std::shared_ptr<const ShardSet>> sets_;
  std::vector<Job> jobs_;
  int64_t shards_ = 0;
  // Not under the mutex: the low-priority thread may hold it for long.
  std::atomic<State> state_ = State::under_way;
  std::exception_ptr failure_;  // written before state_ becomes failed
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::vector<std::byte> piece_;
  double rest_ = 0;  // seconds before the next read
  std::thread thread_;
};

}  // namespace bamtrain

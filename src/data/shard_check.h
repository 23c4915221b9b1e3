#pragma once
// Shards against their manifests, while a run trains on them.

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

/// Compares the SHA-256 of shards with what their manifests say, each once, in a thread that stays
/// behind all others: the system gives it the processor and the disk when nobody else wants them
/// (where it can), and it reads at most 64 MiB a second and rests three times as long as each piece
/// took, so that a disk that others wait for is asked for a quarter of what it gives at most.
class ShardCheck {
 public:
  /// The shards of these sets that have a manifest, and of these every `parts`-th from number
  /// `part` on, so that each of `parts` processes compares others. `turn` decides which comes
  /// first: a run that starts often and ends early comes to all in time. REQUIRES: 0 <= part <
  /// parts.
  ShardCheck(std::vector<std::shared_ptr<const ShardSet>> sets, int part, int parts, int64_t turn);
  /// Stops the thread, which ends what it reads at the moment.
  ~ShardCheck();
  ShardCheck(const ShardCheck&) = delete;
  ShardCheck& operator=(const ShardCheck&) = delete;

  /// Shards with a manifest, of all parts.
  int64_t shards() const { return shards_; }
  /// Starts the thread. std::system_error where none can be had. REQUIRES: called once.
  void start();
  /// Whether the shards of this part are all as their manifests say.
  bool passed() const { return state_ == State::passed; }
  /// Throws what was found: an Error (ExitCode::data) for a shard whose digest is another, with
  /// both, or as Shard::read_file. Never waits.
  void require_good() const;

 private:
  enum class State { under_way, passed, failed };
  struct Job {
    const Shard* shard;
    const std::string* sha256;  // as the manifest says
  };

  void run();
  bool compare(const Job& job);
  bool rest();

  std::vector<std::shared_ptr<const ShardSet>> sets_;
  std::vector<Job> jobs_;
  int64_t shards_ = 0;
  // Not under the mutex: a thread that others go before may hold that for long.
  std::atomic<State> state_ = State::under_way;
  std::exception_ptr failure_;  // written before state_ becomes failed
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::vector<std::byte> piece_;
  double rest_ = 0;  // seconds before the next piece
  std::thread thread_;
};

}  // namespace bamtrain

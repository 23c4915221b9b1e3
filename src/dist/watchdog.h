#pragma once
// Ends a process that would wait for its peers for ever.
//
// Every wait for other processes has a name and a limit: train.peer_timeout times the patience of
// what the run is doing. A thread checks it. Beside MPI and NCCL each process has a connection to
// rank 0, over which the threads send heartbeats. One that closes without a goodbye, or that is
// silent for train.peer_timeout, ends all processes. The thread calls neither MPI nor CUDA.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace bamtrain {

/// What a run is doing.
struct Phase {
  const char* name;
  int patience;  // limit of a wait, times train.peer_timeout; 0: as long as all give heartbeats
};
namespace phases {
inline constexpr Phase kConnecting = {"connecting", 10};
inline constexpr Phase kFirstStep = {"the first step", 10};
inline constexpr Phase kTraining = {"training", 1};
inline constexpr Phase kSaving = {"saving", 10};
inline constexpr Phase kEvaluating = {"evaluating", 0};
inline constexpr Phase kOther = {"work before or after training", 0};
}  // namespace phases

class Watchdog {
 public:
  static constexpr double kDefaultTimeout = 60;  // s

  /// Watches this process alone, until connect().
  Watchdog();
  /// Says goodbye to the other processes.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Connects this process with rank 0. broadcast(data, bytes) copies rank 0's bytes to all ranks.
  /// Collective. Returns why there is no connection; empty: there is one.
  std::string connect(int rank, int size,
                      const std::function<void(void* data, int64_t bytes)>& broadcast);

  /// In seconds; 0: waits have no limit and silence is not noticed.
  void set_timeout(double seconds);

  /// Called in the watchdog's thread before it ends the process, to release a library that hangs.
  void before_end(std::function<void()> f);

  /// Tells the other processes that this one ends with an error of its own: they end with the same
  /// exit code, if the launcher does not end them before.
  void fail(int exit_code);

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A wait for other processes, from construction to destruction. `operation` outlives it. Waits may
/// be nested. A null watchdog watches nothing.
class Wait {
 public:
  static constexpr int kNobody = -1;

  /// peer: whom alone this process waits for, if anybody. times: of the phase's limit.
  Wait(Watchdog* watchdog, const char* operation, int peer = kNobody, int64_t times = 1);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  struct Waited {
    const char* operation = nullptr;
    int peer = kNobody;
    int64_t times = 1;
  };
  friend struct Watchdog::State;
  Watchdog* watchdog_;
  Waited outer_;
};

/// Sets the phase, from construction to destruction. `step`: the number of the step in progress.
class InPhase {
 public:
  InPhase(Watchdog* watchdog, const Phase& phase, int64_t step);
  ~InPhase();
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  Watchdog* watchdog_;
  const Phase* outer_ = nullptr;
  int64_t outer_step_ = 0;
};

}  // namespace bamtrain

#include "dist/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/print_at_once.h"
#include "core/signals_blocked.h"
#include "core/utf8.h"
#include "dist/watch_socket.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestInterval(500);  // between heartbeats
constexpr milliseconds kSilent(1500);          // three of them
constexpr milliseconds kVerdict(2000);         // that a process waits for rank 0's
constexpr milliseconds kLauncher(3000);        // that a launcher has to end the others
constexpr milliseconds kLibrary(2000);         // that before_end() may take
constexpr milliseconds kStranger(10000);       // until who connects has to say who it is

constexpr int kCode = static_cast<int>(ExitCode::distributed);
constexpr const char* kRemedy = "; run the same command again: it resumes from the last checkpoint";

double in_seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }
std::string seconds_text(Clock::duration d) { return fmt::format("{:.3g} s", in_seconds(d)); }

}  // namespace

struct Watchdog::State {
  /// What is known of another process.
  struct Peer {
    int rank = -1;  // until it has said so
    int process = 0;
    std::string host;
    WatchSocket socket;
    Clock::time_point heard;
    WatchedState state;
    bool left = false;  // said goodbye

    void learn(const WatchMessage& m) {
      heard = Clock::now();
      state = m.state;
      process = m.process;
      host = m.host;
    }
    bool watched() const { return rank >= 0 && !left; }
    /// "rank 3 (process 4242 on node7)".
    std::string name() const {
      return fmt::format("rank {} (process {} on {})", rank, process, host);
    }
    /// ", last seen in MPI_Wait of training, step 41".
    std::string last_seen() const {
      return fmt::format(", last seen in {}, step {}", state.doing, state.step);
    }
  };

  // --- shared by the process that is watched and the thread
  std::mutex mutex;
  Wait::Waited wait;  // operation: null, it does not wait
  Clock::time_point since;
  uint64_t waits = 0;
  const Phase* phase = &phases::kOther;
  int64_t step = 0;
  double timeout = kDefaultTimeout;
  std::function<void()> before_end;
  bool stops = false, fails = false;
  bool says_goodbye = false;        // when it stops
  int code = 0;                     // of fails, and of end_soon()
  std::condition_variable changed;  // fails has been told

  // --- of the thread
  int rank = -1, size = 1;
  WatchMessage own;         // who this process is
  WatchSocket listening;    // rank 0's
  std::vector<Peer> peers;  // of rank 0: all that have called; of others: rank 0
  int wake = -1;
  std::thread thread;
  Clock::time_point beaten, looked;
  std::optional<Clock::time_point> told_late, ends_at;
  std::string ends_for;  // what is told then; empty: another process has told it

  void start();
  /// Waits until the thread has ended.
  void stop(bool goodbye);
  /// Waits until the others have been told that this process fails, for kVerdict at most.
  void fail(int with);
  WatchMessage message(WatchKind kind);
  /// Prints why, and ends all processes.
  [[noreturn]] void end_all(const std::string& why);

 private:
  void run();
  void wake_thread() const;
  void tell_failure();
  milliseconds interval();
  void wait_for_messages();
  void send_to_all(const WatchMessage& m);
  void take(Peer& peer, const WatchMessage& m);
  void welcome(Peer& peer, const WatchMessage& m);
  void lost(Peer& peer);
  void check_silence(Clock::duration pause);
  void check_wait();
  /// Why this process has waited too long; none: it has not.
  std::optional<std::string> late();
  std::string culprit();
  bool silent(const Peer& peer) const { return looked - peer.heard > kSilent; }
  /// Ends this process with `with`, and all if there is a reason, unless the launcher is faster.
  void end_soon(int with, const std::string& why);
  [[noreturn]] void end(int with);
};

void Watchdog::State::start() {
  wake = ::eventfd(0, EFD_CLOEXEC);
  beaten = looked = Clock::now();
  stops = false;
  const SignalsBlocked in_thread;
  thread = std::thread([this] { run(); });
}

void Watchdog::State::wake_thread() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake, &one, sizeof one);
}

void Watchdog::State::stop(bool goodbye) {
  if (!thread.joinable()) return;
  {
    const std::lock_guard lock(mutex);
    stops = true;
    says_goodbye = goodbye;
  }
  wake_thread();
  thread.join();
  ::close(wake);
}

void Watchdog::State::fail(int with) {
  std::unique_lock lock(mutex);
  code = with;
  fails = true;
  wake_thread();
  changed.wait_for(lock, kVerdict, [this] { return !fails; });
}

milliseconds Watchdog::State::interval() {
  const std::lock_guard lock(mutex);
  if (timeout == 0) return kLongestInterval;
  return std::clamp(milliseconds(static_cast<int64_t>(timeout * 125)), milliseconds(20),
                    kLongestInterval);
}

void Watchdog::State::run() {
  for (;;) {
    wait_for_messages();
    const Clock::time_point now = Clock::now();
    // A pause of this process or its machine is no silence of others.
    Clock::duration pause = now - looked - interval();
    if (pause < interval()) pause = {};
    looked = now;
    bool stop = false;
    {
      const std::lock_guard lock(mutex);
      since = std::min(since + pause, looked);
      stop = stops;
    }
    if (stop) {
      if (says_goodbye) send_to_all(message(WatchKind::goodbye));
      return;
    }
    tell_failure();
    if (ends_at && now >= *ends_at) ends_for.empty() ? end(code) : end_all(ends_for);
    if (now - beaten >= interval()) {
      beaten = now;
      send_to_all(message(WatchKind::beat));
    }
    if (ends_at) continue;
    check_silence(pause);
    check_wait();
  }
}

void Watchdog::State::tell_failure() {
  {
    const std::lock_guard lock(mutex);
    if (!fails) return;
  }
  send_to_all(message(WatchKind::failed));
  ends_at = Clock::now() + kLauncher;  // in case that MPI does not end the process
  {
    const std::lock_guard lock(mutex);
    fails = false;
  }
  changed.notify_all();
}

void Watchdog::State::wait_for_messages() {
  std::vector<pollfd> polled = {{wake, POLLIN, 0}, {listening.descriptor(), POLLIN, 0}};
  for (const Peer& p : peers) polled.push_back({p.socket.descriptor(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), static_cast<int>(interval().count())) <= 0) return;
  uint64_t woken = 0;
  if (polled[0].revents != 0) (void)!::read(wake, &woken, sizeof woken);
  if (polled[1].revents != 0) {
    if (WatchSocket caller = accept_peer(listening); caller.open()) {
      Peer& p = peers.emplace_back();
      p.socket = std::move(caller);
      p.heard = Clock::now();
    }
  }
  for (Peer& p : peers) {
    bool closed = false;
    while (p.socket.open()) {
      const std::optional<WatchMessage> m = p.socket.receive(&closed);
      if (!m) break;
      take(p, *m);
    }
    if (closed) lost(p);
  }
}

WatchMessage Watchdog::State::message(WatchKind kind) {
  WatchMessage m = own;
  m.kind = kind;
  const std::lock_guard lock(mutex);
  m.code = code;
  m.state.step = step;
  m.state.waits = waits;
  m.state.waiting = wait.operation != nullptr ? 1 : 0;
  put_text(m.state.doing, wait.operation != nullptr
                              ? fmt::format("{} of {}", wait.operation, phase->name)
                              : phase->name);
  return m;
}

void Watchdog::State::send_to_all(const WatchMessage& m) {
  for (Peer& p : peers) {
    if (p.watched()) p.socket.send(m);
  }
}

void Watchdog::State::welcome(Peer& peer, const WatchMessage& m) {
  const bool known =
      std::any_of(peers.begin(), peers.end(), [&](const Peer& p) { return p.rank == m.rank; });
  if (m.kind != WatchKind::hello || known || m.rank < 1 || m.rank >= size ||
      std::memcmp(m.token, own.token, sizeof m.token) != 0) {
    return peer.socket.close();
  }
  peer.rank = m.rank;
  peer.learn(m);
  peer.socket.send(message(WatchKind::welcome));
}

void Watchdog::State::take(Peer& peer, const WatchMessage& m) {
  if (peer.rank < 0) return welcome(peer, m);
  peer.learn(m);
  switch (m.kind) {
    case WatchKind::late:
      if (ends_at) return;
      end_all(peer.name() + ": " + m.text + culprit());
    case WatchKind::failed:
      peer.left = true;
      end_soon(m.code, "");
      if (rank == 0) send_to_all(message(WatchKind::failed));
      return;
    case WatchKind::end:
      end(m.code);
    case WatchKind::goodbye:
      peer.left = true;
      return;
    case WatchKind::hello:
    case WatchKind::welcome:
    case WatchKind::beat:
      return;
  }
}

void Watchdog::State::lost(Peer& peer) {
  peer.socket.close();
  if (peer.watched()) end_soon(kCode, peer.name() + " ended without a word" + peer.last_seen());
}

void Watchdog::State::check_silence(Clock::duration pause) {
  double limit = 0;
  {
    const std::lock_guard lock(mutex);
    limit = timeout;
  }
  for (Peer& p : peers) {
    p.heard = std::min(p.heard + pause, looked);
    if (p.rank < 0 && looked - p.heard > kStranger) p.socket.close();
    if (limit == 0 || !silent(p) || !p.watched() || in_seconds(looked - p.heard) <= limit) continue;
    end_all(
        fmt::format("{} gives no sign of life for {}, over train.peer_timeout = {:g}{}: it is "
                    "stopped, or its node cannot be reached",
                    p.name(), seconds_text(looked - p.heard), limit, p.last_seen()));
  }
  std::erase_if(peers, [](const Peer& p) { return p.rank < 0 && !p.socket.open(); });
}

std::optional<std::string> Watchdog::State::late() {
  const std::lock_guard lock(mutex);
  const double times = static_cast<double>(phase->patience * wait.times), limit = times * timeout;
  if (wait.operation == nullptr || limit == 0 || in_seconds(looked - since) <= limit) {
    return std::nullopt;
  }
  const std::string peer =
      wait.peer == Wait::kNobody ? "other processes" : fmt::format("rank {}", wait.peer);
  return fmt::format("{} of {}, step {}, waits for {} for {}, over {}train.peer_timeout = {:g}",
                     wait.operation, phase->name, step, peer, seconds_text(looked - since),
                     times == 1 ? "" : fmt::format("{:g} times ", times), timeout);
}

void Watchdog::State::check_wait() {
  const std::optional<std::string> text = late();
  if (!text) return told_late.reset();
  if (rank <= 0 || peers.empty()) end_all(*text + culprit());
  if (!told_late) {
    told_late = looked;
    WatchMessage m = message(WatchKind::late);
    put_text(m.text, *text);
    peers[0].socket.send(m);
  } else if (looked - *told_late > kVerdict) {
    end_all(*text + culprit());
  }
}

/// The process that the others seem to wait for: of rank 0's peers one that is silent, else one
/// that does not wait, else one that is behind.
std::string Watchdog::State::culprit() {
  const WatchedState mine = message(WatchKind::beat).state;
  const auto reached = [](const WatchedState& s) { return std::pair(s.step, s.waits); };
  const auto order = [&](const Peer& p) {
    return std::tuple(!silent(p), p.state.waiting, reached(p.state));
  };
  std::vector<bool> connected(static_cast<size_t>(size), false);
  connected[0] = true;
  const Peer* worst = nullptr;
  auto furthest = reached(mine);
  for (const Peer& p : peers) {
    if (p.rank < 0) continue;
    connected[static_cast<size_t>(p.rank)] = true;
    if (!p.watched()) continue;
    if (worst == nullptr || order(p) < order(*worst)) worst = &p;
    furthest = std::max(furthest, reached(p.state));
  }
  for (int r = 0; rank == 0 && r < size; ++r) {
    if (!connected[static_cast<size_t>(r)]) return fmt::format("; rank {} has not connected", r);
  }
  if (worst == nullptr) return "";
  if (silent(*worst)) {
    return fmt::format("; {} gives no sign of life for {}{}", worst->name(),
                       seconds_text(looked - worst->heard), worst->last_seen());
  }
  const bool behind = rank == 0 && mine.waiting != 0 && reached(worst->state) < furthest;
  if (worst->state.waiting == 0 || behind) {
    return fmt::format("; {} is in {}, step {}", worst->name(), worst->state.doing,
                       worst->state.step);
  }
  if (rank != 0) return "";
  if (mine.waiting != 0 && reached(mine) == furthest) {
    return "; all processes wait: messages between them do not arrive";
  }
  return fmt::format("; rank 0 is in {}, step {}", mine.doing, mine.step);
}

void Watchdog::State::end_all(const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    code = kCode;
  }
  if (rank == 0) send_to_all(message(WatchKind::end));
  print_at_once(fmt::format("bamtrain: {}{}\n", rank < 0 ? "" : fmt::format("rank {}: ", rank),
                            printable(why + kRemedy)));
  end(kCode);
}

void Watchdog::State::end_soon(int with, const std::string& why) {
  if (ends_at) return;
  {
    const std::lock_guard lock(mutex);
    code = with;
  }
  ends_at = Clock::now() + kLauncher;
  ends_for = why;
}

void Watchdog::State::end(int with) {
  // Kept: a wait of the process that the library gives up does not end, as the next begins.
  mutex.lock();
  if (before_end) {
    auto* const done = new std::promise<void>;  // outlives a library that hangs
    std::future<void> ended = done->get_future();
    std::thread([f = before_end, done] {
      f();
      done->set_value();
    }).detach();
    (void)ended.wait_for(kLibrary);
  }
  ::_exit(with);
}

Watchdog::Watchdog() : state_(std::make_unique<State>()) { state_->start(); }

Watchdog::~Watchdog() { state_->stop(true); }

std::string Watchdog::connect(int rank, int size,
                              const std::function<void(void*, int64_t)>& broadcast) {
  State& s = *state_;
  s.stop(false);
  s.rank = rank;
  s.size = size;
  s.own.rank = rank;
  s.own.process = static_cast<int32_t>(::getpid());
  (void)::gethostname(s.own.host, sizeof s.own.host - 1);
  WatchAddress address;  // without a port: rank 0 does not listen
  std::string why;
  if (rank == 0) {
    s.listening = listen_for_peers(size, &address, &why);
    std::copy(std::begin(address.token), std::end(address.token), s.own.token);
  }
  s.start();  // rank 0 answers
  broadcast(&address, sizeof address);
  if (rank == 0) return why;
  s.stop(false);
  std::copy(std::begin(address.token), std::end(address.token), s.own.token);
  WatchSocket socket;
  WatchMessage welcome;
  if (address.port == 0) {
    why = "rank 0 cannot listen";
  } else {
    socket = connect_to(address, s.message(WatchKind::hello), &welcome, &why);
  }
  if (socket.open()) {
    State::Peer& first = s.peers.emplace_back();
    first.rank = 0;
    first.learn(welcome);
    first.socket = std::move(socket);
  }
  s.start();
  return why;
}

void Watchdog::set_timeout(double seconds) {
  const std::lock_guard lock(state_->mutex);
  state_->timeout = seconds;
}

void Watchdog::before_end(std::function<void()> f) {
  const std::lock_guard lock(state_->mutex);
  state_->before_end = std::move(f);
}

void Watchdog::fail(int exit_code) { state_->fail(exit_code); }

Wait::Wait(Watchdog* watchdog, const char* operation, int peer, int64_t times)
    : watchdog_(watchdog) {
  if (watchdog == nullptr) return;
  Watchdog::State& s = watchdog->state();
  const std::lock_guard lock(s.mutex);
  outer_ = std::exchange(s.wait, {operation, peer, times});
  s.since = Clock::now();
  ++s.waits;
}

Wait::~Wait() {
  if (watchdog_ == nullptr) return;
  Watchdog::State& s = watchdog_->state();
  const std::lock_guard lock(s.mutex);
  s.wait = outer_;
  s.since = Clock::now();
}

InPhase::InPhase(Watchdog* watchdog, const Phase& phase, int64_t step) : watchdog_(watchdog) {
  if (watchdog == nullptr) return;
  Watchdog::State& s = watchdog->state();
  const std::lock_guard lock(s.mutex);
  outer_ = std::exchange(s.phase, &phase);
  outer_step_ = std::exchange(s.step, step);
}

InPhase::~InPhase() {
  if (watchdog_ == nullptr) return;
  Watchdog::State& s = watchdog_->state();
  const std::lock_guard lock(s.mutex);
  s.phase = outer_;
  s.step = outer_step_;
}

}  // namespace bamtrain

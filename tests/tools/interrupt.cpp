#include "data_tools/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "catch.h"

namespace bamtrain {
namespace {

/// The signal of the Interrupted that `f` throws; 0 if it throws none.
template <class F>
int signal_of(F&& f) {
  try {
    f();
  } catch (const Interrupted& e) {
    return e.signal;
  }
  return 0;
}

/// Default signal handling, as on a user's terminal. Under nohup, or in a script's background, the
/// tests start with some signals ignored.
class ObeyedSignals {
 public:
  ObeyedSignals() {
    struct sigaction obey = {};
    obey.sa_handler = SIG_DFL;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &obey, &former_[i]);
  }
  ~ObeyedSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> former_;
};

struct Pipe {
  int ends[2];
  Pipe() { REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
};

TEST_CASE("a signal under the guard is an exception at the next check, none is no exception") {
  const ObeyedSignals obeyed;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptGuard guard;
    CHECK(signal_of(check_interrupt) == 0);
    REQUIRE(::raise(signal) == 0);
    CHECK(signal_of(check_interrupt) == signal);
  }
  const InterruptGuard next;  // starts fresh
  CHECK(signal_of(check_interrupt) == 0);
}

TEST_CASE("a signal that came before the wait for input ends it, though no input comes") {
  const ObeyedSignals obeyed;
  const Pipe pipe;
  const InterruptGuard guard;
  REQUIRE(::raise(SIGTERM) == 0);
  CHECK(signal_of([&] { wait_for_input(pipe.ends[0]); }) == SIGTERM);
}

TEST_CASE("a signal that comes during the wait for input ends it") {
  const ObeyedSignals obeyed;
  const Pipe pipe;
  const pid_t parent = ::getpid();
  const InterruptGuard guard;
  // A separate process: a thread of this one could receive the signal itself.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::kill(parent, SIGINT);
    ::_exit(0);
  }
  CHECK(signal_of([&] { wait_for_input(pipe.ends[0]); }) == SIGINT);
}

TEST_CASE("input, its end, and a descriptor of none end the wait") {
  const InterruptGuard guard;
  Pipe pipe;
  REQUIRE(::write(pipe.ends[1], "x", 1) == 1);
  CHECK(signal_of([&] { wait_for_input(pipe.ends[0]); }) == 0);
  char x = 0;
  REQUIRE(::read(pipe.ends[0], &x, 1) == 1);
  ::close(pipe.ends[1]);
  pipe.ends[1] = -1;
  CHECK(signal_of([&] { wait_for_input(pipe.ends[0]); }) == 0);
  CHECK(signal_of([] { wait_for_input(12345); }) == 0);
}

TEST_CASE("an ignored signal stays ignored, and handlers return with the guard's end") {
  struct sigaction ignore = {}, before = {}, after = {};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGHUP, &ignore, &before) == 0);
  {
    const InterruptGuard guard;
    REQUIRE(::raise(SIGHUP) == 0);
    CHECK(signal_of(check_interrupt) == 0);
  }
  REQUIRE(::sigaction(SIGHUP, &before, &after) == 0);
  CHECK(after.sa_handler == SIG_IGN);
  sigset_t mask;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0);
  CHECK(sigismember(&mask, SIGINT) == 0);
}

}  // namespace
}  // namespace bamtrain

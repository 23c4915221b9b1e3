#include "core/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>

#include "catch.h"
#include "on_terminal.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Prints "live 100" on a terminal with that many columns, "plain" without a terminal.
void say() {
  const Terminal terminal(STDOUT_FILENO);
  fmt::print("{}\n", terminal.live() ? fmt::format("live {}", terminal.columns()) : "plain");
  std::fflush(stdout);
}

void set(const char* term, const char* no_color) {
  setenv("TERM", term, 1);
  setenv("NO_COLOR", no_color, 1);
}

/// Calls say() in a process whose standard output is a terminal that `launcher` created and copies
/// to its own output, as mpirun does.
void say_behind_a_launcher() {
  int made = -1;
  const int other = posix_openpt(O_RDWR | O_NOCTTY);
  if (other < 0 || grantpt(other) != 0 || unlockpt(other) != 0) _exit(1);
  made = open(ptsname(other), O_RDWR | O_NOCTTY);
  const pid_t rank = fork();
  if (rank == 0) {
    dup2(made, STDOUT_FILENO);
    say();
    _exit(0);
  }
  close(made);
  char piece[256];
  for (ssize_t n; (n = read(other, piece, sizeof piece)) > 0;) {
    if (write(STDOUT_FILENO, piece, static_cast<size_t>(n)) != n) _exit(1);
  }
  waitpid(rank, nullptr, 0);
}

}  // namespace

TEST_CASE("the terminal of a session is live and tells its columns") {
  const std::string told = on_terminal(100, [] {
    set("xterm", "");
    say();
    winsize size = {};
    size.ws_col = 40;
    ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
    say();
    size.ws_col = 0;
    ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
    say();
  });
  CHECK(told == "live 100\r\nlive 40\r\nlive 80\r\n");
}

TEST_CASE("TERM=dumb, no TERM and NO_COLOR ask for plain lines") {
  const auto told = [](const char* term, const char* no_color) {
    return on_terminal(100, [=] {
      set(term, no_color);
      say();
    });
  };
  CHECK(told("xterm", "") == "live 100\r\n");
  CHECK(told("dumb", "") == "plain\r\n");
  CHECK(told("", "") == "plain\r\n");
  CHECK(told("xterm", "1") == "plain\r\n");
}

TEST_CASE("a file and a pipe are no terminals") {
  const std::string told = on_terminal(100, [] {
    set("xterm", "");
    for (const char* place : {"/dev/null", "/dev/zero"}) {
      const int out = open(place, O_WRONLY);
      std::printf("%d", Terminal(out).live());
    }
    int ends[2];
    std::printf("%d", pipe(ends) == 0 && Terminal(ends[1]).live());
  });
  CHECK(told == "000");
}

TEST_CASE("a terminal that a launcher made is what the launcher writes to") {
  CHECK(on_terminal(70, [] {
          set("xterm", "");
          say_behind_a_launcher();
        }).starts_with("live 70"));
  // The launcher's output goes to a file or a pipe, while the session has a terminal.
  const std::string told = on_terminal(70, [] {
    set("xterm", "");
    const int terminal = dup(STDOUT_FILENO);
    int ends[2];
    if (pipe(ends) != 0) _exit(1);
    dup2(ends[1], STDOUT_FILENO);
    say_behind_a_launcher();
    char piece[256];
    const ssize_t n = read(ends[0], piece, sizeof piece);
    if (write(terminal, piece, static_cast<size_t>(n)) != n) _exit(1);
  });
  CHECK(told.starts_with("plain"));
}

#include "record/progress_line.h"

#include <cstdio>

#include "catch.h"
#include "on_terminal.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// What an evaluation of 25 seconds prints, with TERM set to `term`.
std::string printed(const char* term) {
  return on_terminal(100, [term] {
    setenv("TERM", term, 1);
    unsetenv("NO_COLOR");
    LinePace::Clock::time_point at;
    const ProgressLine line(true, [&at] { return at; });
    const auto done = line.progress("copy at 64");
    for (int second = 1; second <= 25; ++second) {
      at += std::chrono::seconds(1);
      done(second / 50.0);
    }
    line.clear();
    for (int second = 0; second < 5; ++second) {
      at += std::chrono::seconds(1);
      line.show("windows at 256", 0.5);
    }
    std::fputs("end", stderr);
  });
}

}  // namespace

TEST_CASE("a share has a time left once some work and some time are known") {
  CHECK(share_line("copy", 0.4, 60) == "copy: 40%, 1m30s left");
  CHECK(share_line("copy", 0.4, std::nullopt) == "copy: 40%");
  CHECK(share_line("copy", 0, 60) == "copy: 0%");
  CHECK(share_line("copy", 1, 60) == "copy: 100%");
}

TEST_CASE("a log gets a plain line of an evaluation every ten seconds") {
  CHECK(printed("dumb") ==
        "copy at 64: 20%, 40s left\r\ncopy at 64: 40%, 30s left\r\nwindows at 256: 50%\r\nend");
}

TEST_CASE("a terminal shows one line of an evaluation, which is cleared") {
  const std::string shown = printed("xterm");
  CHECK(shown.find("\r\033[Kcopy at 64: 50%, 25s left") != std::string::npos);
  CHECK(shown.find("\r\033[Kwindows at 256: 50%") != std::string::npos);
  CHECK(shown.find('\n') == std::string::npos);
}

TEST_CASE("the other processes print nothing") {
  const std::string shown = on_terminal(100, [] {
    setenv("TERM", "xterm", 1);
    const ProgressLine line(false);
    line.show("copy", 0.5);
    line.progress("copy")(0.5);
    line.clear();
  });
  CHECK(shown.empty());
}

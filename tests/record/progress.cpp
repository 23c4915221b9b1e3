#include "record/progress.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "catch.h"
#include "on_terminal.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// A model of 1 B parameters on 10^9 tokens and more, at its last step, so that every number is
/// long.
ProgressState longest() {
  ProgressState s;
  s.result = {19251, 10.4551, 1e-3, 12.34};
  s.steps = 19251;
  s.smoothed = 10.4551;
  s.tokens_per_second = 1'234'567;
  s.share = 1;
  s.resident_bytes = int64_t{139} << 30;
  s.seconds_left = 9 * 86400 + 23 * 3600;
  return s;
}

}  // namespace

TEST_CASE("durations past a year are told in years") {
  CHECK(format_duration(59) == "59s");
  CHECK(format_duration(364 * 86400.0) == "364d00h");
  CHECK(format_duration(884 * 86400.0 + 16 * 3600) == "2.4 years");
  CHECK(format_duration(1e20) == "3.17e+12 years");
}

TEST_CASE("the line of a long run fits 80 columns") {
  CHECK(progress_line(longest(), 80) ==
        "19251/19251 loss 10.4551 (10.4551) |g| 12.34 lr 1.0e-03 eta 9d23h 1.23M tok/s");
  ProgressState later = longest();
  later.result = {9251, 2.4551, 9.81e-4, 0.3449};
  later.smoothed = 2.4432;
  later.tokens_per_second = 123'456;
  later.share = 0.824;
  later.seconds_left = 86400 + 3 * 3600;
  CHECK(progress_line(later, 80) ==
        "9251/19251 loss 2.4551 (2.4432) |g| 0.34 lr 9.8e-04 eta 1d03h 123k tok/s (82%)");
}

TEST_CASE("the line of a run that has ended says how long it took in place of how long it takes") {
  ProgressState s = longest();
  s.total_seconds = 86400 + 3 * 3600;
  CHECK(progress_line(s, 80) ==
        "19251/19251 loss 10.4551 (10.4551) |g| 12.34 lr 1.0e-03 total 1d03h 1.23M tok/s");
}

TEST_CASE("a wider terminal shows all of it, a log as well") {
  const std::string whole =
      "19251/19251 loss 10.4551 (10.4551) |g| 12.34 lr 1.0e-03 eta 9d23h 1.23M tok/s (100%) 139.0G";
  CHECK(progress_line(longest(), whole.size() + 1) == whole);
  CHECK(progress_line(longest(), std::string::npos) == whole);
  CHECK(progress_line(longest(), whole.size()) == whole.substr(0, whole.size() - 7));
}

TEST_CASE("a narrow terminal shows whole parts only") {
  CHECK(progress_line(longest(), 40) == "19251/19251 loss 10.4551 (10.4551)");
  CHECK(progress_line(longest(), 34) == "19251/19251");
  CHECK(progress_line(longest(), 35) == "19251/19251 loss 10.4551 (10.4551)");
  CHECK(progress_line(longest(), 11).empty());
  CHECK(progress_line(longest(), 1).empty());
}

TEST_CASE("numbers of any size stay short") {
  ProgressState s = longest();
  s.share = 0;
  const auto rate = [&s](double r) {
    s.tokens_per_second = r;
    const std::string line = progress_line(s, std::string::npos);
    const size_t end = line.find(" tok/s"), begin = line.rfind(' ', end - 1) + 1;
    return line.substr(begin, end - begin);
  };
  CHECK(rate(0) == "0.00");
  CHECK(rate(7.254) == "7.25");
  CHECK(rate(9.996) == "10.0");
  CHECK(rate(99.96) == "100");
  CHECK(rate(999.4) == "999");
  CHECK(rate(999.6) == "1.00k");
  CHECK(rate(72'540) == "72.5k");
  CHECK(rate(999'600) == "1.00M");
  CHECK(rate(2.5e9) == "2.50G");
  s.result.norm = 123456;
  CHECK(progress_line(s, std::string::npos).find(" |g| 1.2e+05 ") != std::string::npos);
}

TEST_CASE("an impossible MFU is left out") {
  for (double share : {0.05, 0.5, 1.0}) CHECK(plausible_mfu(share) == share);
  for (double share : {-1.0, 0.0, 0.049, 1.001, 2.7, 1e300}) CHECK(plausible_mfu(share) == 0);
  CHECK(plausible_mfu(std::nan("")) == 0);
  ProgressState s = longest();
  s.share = 0;
  CHECK(progress_line(s, std::string::npos).find('%') == std::string::npos);
}

TEST_CASE("MFU is relative to the best matmul peak that was measured") {
  Progress progress(0, 2, 1, true);
  const StepResult step = {1, 0, 0, 0, 1'000'000'000, 1'000'000'000};
  progress.steps({&step, 1});
  CHECK(progress.mfu() == 0);  // nothing measured yet
  progress.take_peak_matmul(1e300);
  CHECK(progress.mfu() == 0);
  progress.take_peak_matmul(progress.tokens_per_second());  // MFU would be 1 if this were the best
  CHECK(progress.mfu() == 0);
}

TEST_CASE("MFU counts the FLOPs of a run's tokens, whatever is printed later") {
  constexpr double kFlops = 3;
  Progress progress(0, 2, kFlops, true);
  const StepResult step = {1, 0, 0, 0, 1'000'000'000, 1'000'000'000};
  progress.steps({&step, 1});
  // The rest takes little of this time, so the rate, which falls with time, stays nearly the same.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double rate = 2 * kFlops * progress.tokens_per_second();
  for (const double told : {rate, rate / 4, rate / 100}) {
    progress.take_peak_matmul(told);
    const double most = kFlops * progress.tokens_per_second() / rate;
    const double share = progress.mfu();
    const double least = kFlops * progress.tokens_per_second() / rate;
    CHECK(most <= Approx(0.5));
    CHECK(share <= most);
    CHECK(share >= least);
    CHECK(least > 0.05);
  }
}

namespace {

/// The final content of a terminal with 100 columns after `child` has printed on it. `child` may
/// change the width to 30.
std::vector<std::string> left_on_screen(const std::function<void()>& child) {
  Screen screen(100, 30);
  screen.show(on_terminal(100, [&child] {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    child();
  }));
  return screen.lines();
}

void become_narrow() {
  std::fputs("\a", stdout);
  std::fflush(stdout);
  winsize size = {};
  size.ws_col = 30;
  ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
}

constexpr StepResult kTwoSteps[] = {{1, 2.5, 0.001, 0.25, 1024, 1024},
                                    {2, 2.5, 0.001, 0.25, 1024, 1024}};

}  // namespace

TEST_CASE("a terminal that became narrower keeps no part of the live line") {
  const auto noted = left_on_screen([] {
    Progress progress(0, 3, 1, false);
    progress.note("a note before");
    progress.steps({kTwoSteps, 1});
    become_narrow();
    progress.note("a note");
  });
  CHECK(noted == std::vector<std::string>{"a note before", "a note", ""});
  const auto ended = left_on_screen([] {
    Progress progress(0, 3, 1, false);
    progress.note("a note before");
    progress.steps({kTwoSteps, 1});
    become_narrow();
    progress.finish();
  });
  CHECK(ended == std::vector<std::string>{"a note before", "1/3 loss 2.5000 (2.5000)", ""});
}

TEST_CASE("the last line stays and says the total time, with that of earlier parts") {
  const auto steps = [] {
    Progress progress(0, 2, 1, false, 7200);
    progress.steps(kTwoSteps);
    progress.note("a note");
    progress.finish();
  };
  const std::string last = "2/2 loss 2.5000 (2.5000) |g| 0.25 lr 1.0e-03 total 2h00m ";
  const std::vector<std::string> screen = left_on_screen(steps);
  REQUIRE(screen.size() == 3);
  CHECK(screen[0] == "a note");
  CHECK(screen[1].starts_with(last));
  // In a log, the last step also has one line.
  const std::string log = on_terminal(100, [&] {
    setenv("TERM", "dumb", 1);
    steps();
  });
  CHECK(log.starts_with("a note\r\n" + last));
  CHECK(log.find("2/2", log.find("2/2") + 1) == std::string::npos);
}

TEST_CASE("an error in mid-run begins a line of its own") {
  const auto screen = left_on_screen([] {
    try {
      Progress progress(0, 3, 1, false);
      progress.steps({kTwoSteps, 1});
      throw 0;
    } catch (int) {
      std::fputs("bamtrain: step 2", stdout);
    }
  });
  REQUIRE(screen.size() == 2);
  CHECK(screen[0].starts_with("1/3 loss"));
  CHECK(screen[1] == "bamtrain: step 2");
}

#include "record/progress.h"

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "catch.h"
#include "on_terminal.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// A model of 1 B parameters on 10^9 tokens and more, at its last step, so that every number is
/// long.
ProgressState longest() {
  ProgressState s;
  s.result = {19251, 6.4551, 1e-3, 2.34};
  s.steps = 19251;
  s.smoothed = 6.4551;
  s.tokens_per_second = 1'234'567;
  s.mfu = 1;
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
        "19251/19251 loss 6.4551 (6.4551) |g| 2.34 lr 1.0e-3 eta 9d23h 1,234,567 tok/s");
  ProgressState later = longest();
  later.result = {9251, 2.4551, 9.81e-4, 0.3449};
  later.smoothed = 2.4432;
  later.tokens_per_second = 123'456;
  later.mfu = 0.824;
  later.seconds_left = 86400 + 3 * 3600;
  CHECK(progress_line(later, 80) ==
        "9251/19251 loss 2.4551 (2.4432) |g| 0.34 lr 9.8e-4 eta 1d03h 123,456 tok/s 82%");
  later.datasheet_mfu = 0.614;
  CHECK(progress_line(later, 84).ends_with(" 123,456 tok/s 82%/61%"));
  later.mfu = 0;
  CHECK(progress_line(later, 84).ends_with(" 123,456 tok/s -/61%"));
}

TEST_CASE("the line of a run that has ended says how long it took in place of how long it takes") {
  ProgressState s = longest();
  s.total_seconds = 86400 + 3 * 3600;
  CHECK(progress_line(s, 80) ==
        "19251/19251 loss 6.4551 (6.4551) |g| 2.34 lr 1.0e-3 total 1d03h 1,234,567 tok/s");
}

TEST_CASE("a wider terminal shows all of it, a log as well") {
  const std::string whole =
      "19251/19251 loss 6.4551 (6.4551) |g| 2.34 lr 1.0e-3 eta 9d23h 1,234,567 tok/s 100% 139.0G";
  CHECK(progress_line(longest(), whole.size() + 1) == whole);
  CHECK(progress_line(longest(), std::string::npos) == whole);
  CHECK(progress_line(longest(), whole.size()) == whole.substr(0, whole.size() - 7));
}

TEST_CASE("a narrow terminal shows whole parts only") {
  CHECK(progress_line(longest(), 40) == "19251/19251 loss 6.4551 (6.4551)");
  CHECK(progress_line(longest(), 32) == "19251/19251");
  CHECK(progress_line(longest(), 33) == "19251/19251 loss 6.4551 (6.4551)");
  CHECK(progress_line(longest(), 11).empty());
  CHECK(progress_line(longest(), 1).empty());
}

TEST_CASE("numbers of any size stay short") {
  ProgressState s = longest();
  s.mfu = 0;
  const auto rate = [&s](double r) {
    s.tokens_per_second = r;
    const std::string line = progress_line(s, std::string::npos);
    const size_t end = line.find(" tok/s"), begin = line.rfind(' ', end - 1) + 1;
    return line.substr(begin, end - begin);
  };
  CHECK(rate(0) == "0.00");
  CHECK(rate(7.254) == "7.25");
  CHECK(rate(9.996) == "10.0");
  CHECK(rate(99.94) == "99.9");
  CHECK(rate(99.96) == "100");
  CHECK(rate(999.6) == "1,000");
  CHECK(rate(72'540.4) == "72,540");
  CHECK(rate(2.5e9) == "2,500,000,000");
  s.result.norm = 123456;
  CHECK(progress_line(s, std::string::npos).find(" |g| 1.2e+05 ") != std::string::npos);
  for (const auto& [lr, text] :
       std::vector<std::pair<double, std::string>>{{0, " lr 0.0e+0 "},
                                                   {2.5, " lr 2.5e+0 "},
                                                   {1e-10, " lr 1.0e-10 "},
                                                   {1e-300, " lr 1.0e-300 "}}) {
    s.result.lr = lr;
    CHECK(progress_line(s, std::string::npos).find(text) != std::string::npos);
  }
}

TEST_CASE("an impossible MFU is left out") {
  for (double share : {0.05, 0.5, 1.0}) CHECK(plausible_mfu(share) == share);
  for (double share : {-1.0, 0.0, 0.049, 1.001, 2.7, 1e300}) CHECK(plausible_mfu(share) == 0);
  CHECK(plausible_mfu(std::nan("")) == 0);
  ProgressState s = longest();
  s.mfu = 0;
  CHECK(progress_line(s, std::string::npos).find('%') == std::string::npos);
}

namespace {

/// A clock that goes on only when a test says so.
struct HandClock {
  LinePace::Clock::time_point at;
  LinePace::Now now() {
    return [this] { return at; };
  }
  void pass(double seconds) {
    at += std::chrono::duration_cast<LinePace::Clock::duration>(
        std::chrono::duration<double>(seconds));
  }
};

}  // namespace

TEST_CASE("MFU counts the FLOPs of a run's tokens over its time, against the peak") {
  HandClock clock;
  Progress progress(0, 2, 3, true, 0, clock.now());  // 3 FLOPs per token
  const StepResult step = {1, 0, 0, 0, 1000, 1000};
  progress.steps({&step, 1});
  clock.pass(10);
  CHECK(progress.tokens_per_second() == Approx(100));
  CHECK(progress.mfu() == 0);  // nothing measured yet
  progress.take_peak_matmul(400);
  CHECK(progress.mfu() == Approx(0.75));
  progress.take_peak_matmul(600);
  CHECK(progress.mfu() == Approx(0.5));
  progress.take_peak_matmul(500);  // a worse moment
  CHECK(progress.mfu() == Approx(0.5));
  clock.pass(5);
  CHECK(progress.mfu() == Approx(1.0 / 3));
}

TEST_CASE("the legend names the peaks that are known") {
  CHECK(progress_legend(0, {}) ==
        "each line: step, loss (smoothed), |g| gradient norm, lr learning rate, eta time left,\n"
        "tokens per second, MFU, GiB of memory of this process");
  const auto last_line = [](const std::string& text) { return text.substr(text.rfind('\n') + 1); };
  CHECK(last_line(progress_legend(1.66e11, {})) ==
        "MFU: % of the matmul peak measured here, 0.166 TFLOP/s so far");
  CHECK(last_line(progress_legend(6.2e14, {"NVIDIA H200", 9.894e14})) ==
        "MFU: % of the matmul peak measured here, 620 TFLOP/s so far / % of NVIDIA H200's "
        "datasheet, 989.4 TFLOP/s");
  CHECK(last_line(progress_legend(0, {"NVIDIA H200", 9.894e14})) ==
        "MFU: - / % of NVIDIA H200's datasheet, 989.4 TFLOP/s");
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

/// The lines that a progress line's legend takes on a terminal.
constexpr size_t kLegend = 2;

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
  REQUIRE(noted.size() == 3 + kLegend);
  CHECK(noted[0] == "a note before");
  CHECK(noted[1].starts_with("each line: step, loss"));
  CHECK(noted[1 + kLegend] == "a note");
  CHECK(noted.back().empty());
  const auto ended = left_on_screen([] {
    Progress progress(0, 3, 1, false);
    progress.note("a note before");
    progress.steps({kTwoSteps, 1});
    become_narrow();
    progress.finish();
  });
  REQUIRE(ended.size() == 3 + kLegend);
  CHECK(ended[1 + kLegend] == "1/3 loss 2.5000 (2.5000)");
  CHECK(ended.back().empty());
}

TEST_CASE("the last line stays and says the total time, with that of earlier parts") {
  const auto steps = [] {
    Progress progress(0, 2, 1, false, 7200);
    progress.steps(kTwoSteps);
    progress.note("a note");
    progress.finish();
  };
  const std::string last = "2/2 loss 2.5000 (2.5000) |g| 0.25 lr 1.0e-3 total 2h00m ";
  const std::vector<std::string> screen = left_on_screen(steps);
  REQUIRE(screen.size() == 3 + kLegend);
  CHECK(screen[kLegend] == "a note");
  CHECK(screen[kLegend + 1].starts_with(last));
  // In a log, the last step also has one line.
  const std::string log = on_terminal(100, [&] {
    setenv("TERM", "dumb", 1);
    steps();
  });
  CHECK(log.starts_with("a note\r\neach line: "));
  CHECK(log.find("\r\n" + last) != std::string::npos);
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
  REQUIRE(screen.size() == 2 + kLegend);
  CHECK(screen[kLegend].starts_with("1/3 loss"));
  CHECK(screen[kLegend + 1] == "bamtrain: step 2");
}

TEST_CASE("a log gets a line every ten seconds, of steps and of evaluations, the legend once") {
  const std::string log = on_terminal(100, [] {
    setenv("TERM", "dumb", 1);
    HandClock clock;
    Progress progress(0, 100, 1, false, 0, clock.now());
    StepResult step = kTwoSteps[0];
    for (step.step = 1; step.step <= 5; ++step.step) {  // a step takes 4 seconds
      progress.steps({&step, 1});
      clock.pass(4);
    }
    const auto done = progress.evaluation("step 5 validation");  // 20 s after the start
    for (int i = 1; i <= 50; ++i) {
      clock.pass(1);
      done(i / 50.0);
    }
  });
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = log.find("\r\n", at)) != std::string::npos; at = end + 2) {
    lines.push_back(log.substr(at, end - at));
  }
  INFO(log);
  // Steps 1 and 4 end 0 and 12 s after the start; then lines come at 22, 32, 42, 52 and 62 s.
  REQUIRE(lines.size() == kLegend + 7);
  CHECK(lines[kLegend].starts_with("1/100 loss "));
  CHECK(lines[kLegend + 1].starts_with("4/100 loss "));
  CHECK(lines[kLegend + 2] == "step 5 validation: 4%, 48s left");
  CHECK(lines[kLegend + 3] == "step 5 validation: 24%, 38s left");
  CHECK(lines[kLegend + 6] == "step 5 validation: 84%, 8s left");
}

TEST_CASE("a short evaluation without steps adds no line to a log") {
  const std::string log = on_terminal(100, [] {
    setenv("TERM", "dumb", 1);
    HandClock clock;
    Progress progress(0, 100, 1, false, 0, clock.now());
    const auto done = progress.evaluation("validation");
    clock.pass(9);
    done(0.5);
  });
  CHECK(log.empty());
}

TEST_CASE("an evaluation takes the place of the live line, cut to the terminal's width") {
  const auto screen = left_on_screen([] {
    HandClock clock;
    Progress progress(0, 3, 1, false, 0, clock.now());
    progress.steps({kTwoSteps, 1});
    const auto done = progress.evaluation(std::string(150, 'x'));
    clock.pass(1);
    done(0.5);
    progress.note("a note");
    clock.pass(1);
    done(0.75);
  });
  REQUIRE(screen.size() == kLegend + 3);
  CHECK(screen[kLegend] == "a note");
  CHECK(screen[kLegend + 1] == std::string(99, 'x'));
  CHECK(screen.back().empty());
}

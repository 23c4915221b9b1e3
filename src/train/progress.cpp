#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace bamtrain {

namespace {
constexpr double kSmoothing = 0.95;      // weight of the past per step
constexpr double kLiveInterval = 0.2;    // seconds between redraws
constexpr double kPlainInterval = 10.0;  // seconds between plain lines

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}
}  // namespace

std::string format_duration(double s) {
  const auto t = static_cast<int64_t>(s + 0.5);
  if (t < 60) return fmt::format("{}s", t);
  if (t < 3600) return fmt::format("{}m{:02}s", t / 60, t % 60);
  if (t < 86400) return fmt::format("{}h{:02}m", t / 3600, t / 60 % 60);
  return fmt::format("{}d{:02}h", t / 86400, t / 3600 % 24);
}

int64_t resident_bytes() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  if (!f) return 0;
  long total = 0, resident = 0;
  const int n = std::fscanf(f, "%ld %ld", &total, &resident);
  std::fclose(f);
  return n == 2 ? int64_t{resident} * sysconf(_SC_PAGESIZE) : 0;
}

Progress::Progress(int64_t first_step, int64_t steps, int64_t tokens_per_step,
                   double flops_per_token, double matrix_rate, bool quiet)
    : first_step_(first_step),
      steps_(steps),
      tokens_per_step_(tokens_per_step),
      flops_per_token_(flops_per_token),
      matrix_rate_(matrix_rate),
      quiet_(quiet),
      terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()),
      last_print_(start_ - std::chrono::hours(1)) {}

double Progress::tokens_per_second() const {
  const double elapsed = seconds(Clock::now() - start_);
  return elapsed > 0 ? static_cast<double>(done_ * tokens_per_step_) / elapsed : 0;
}

std::string Progress::line(const StepResult& s) const {
  const double rate = tokens_per_second();
  const double left =
      rate > 0 ? static_cast<double>((steps_ - s.step) * tokens_per_step_) / rate : 0;
  std::string share;
  if (matrix_rate_ > 0) {
    share = fmt::format(" {:.0f}% peak", 100 * rate * flops_per_token_ / matrix_rate_);
  }
  return fmt::format(
      "{}/{} loss {:.4f} ({:.4f}) lr {:.1e} |g| {:.2f} {:.0f} tok/s{} {:.1f}G eta {}", s.step,
      steps_, s.loss, smoothed_, s.lr, s.norm, rate, share,
      static_cast<double>(resident_bytes()) / (1 << 30), format_duration(left));
}

void Progress::steps(std::span<const StepResult> ended) {
  for (const StepResult& s : ended) {
    smoothed_ = kSmoothing * smoothed_ * weight_ + (1 - kSmoothing) * s.loss;
    weight_ = kSmoothing * weight_ + (1 - kSmoothing);
    smoothed_ /= weight_;
  }
  const StepResult& s = ended.back();
  done_ = s.step - first_step_;
  if (quiet_) return;
  const auto now = Clock::now();
  const bool last = s.step == steps_;
  if (!last && seconds(now - last_print_) < (terminal_ ? kLiveInterval : kPlainInterval)) return;
  last_print_ = now;
  if (terminal_) {
    fmt::print("\r\033[K{}", line(s));
    live_ = true;
  } else {
    fmt::print("{}\n", line(s));
  }
  std::fflush(stdout);
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  fmt::print("{}{}\n", live_ ? "\r\033[K" : "", text);
  live_ = false;
  std::fflush(stdout);
}

void Progress::finish() {
  if (live_) fmt::print("\n");
  live_ = false;
  std::fflush(stdout);
}

}  // namespace bamtrain

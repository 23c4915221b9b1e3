#include "record/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/short_number.h"
#include "core/standard_output.h"
#include "core/utf8.h"
#include "core/with_commas.h"
#include "record/progress_line.h"

namespace bamtrain {

namespace {
constexpr double kSmoothing = 0.95;                      // weight of earlier steps
constexpr double kLeastShare = 0.05, kLargestShare = 1;  // range of plausible MFU

/// "1.0e-3": an exponent without leading zeros.
std::string short_exponent(double x) {
  std::string text = fmt::format("{:.1e}", x);
  const size_t digits = text.find('e') + 2;
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  return text;
}

/// "38,012"; small rates have three digits.
std::string rate_text(double rate) {
  return rate < 99.95 ? short_number(rate) : with_commas(std::llround(rate));
}

std::string percent(double share) { return share > 0 ? fmt::format("{:.0f}%", 100 * share) : "-"; }

}  // namespace

std::string format_duration(double s) {
  constexpr double kYear = 365.25 * 86400;
  if (s >= 1e6 * kYear) return fmt::format("{:.3g} years", s / kYear);
  if (s >= kYear) return fmt::format("{:.1f} years", s / kYear);
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

double plausible_mfu(double share) {
  return share >= kLeastShare && share <= kLargestShare ? share : 0;
}

std::string progress_line(const ProgressState& s, size_t columns) {
  // On some terminals, a cursor after the last column wraps.
  const size_t most = columns - 1;
  std::vector<std::string> parts = {
      fmt::format("{}/{}", s.result.step, s.steps),
      fmt::format(" loss {:.4f} ({:.4f})", s.result.loss, s.smoothed),
      fmt::format(fmt::runtime(s.result.norm < 1000 ? " |g| {:.2f}" : " |g| {:.1e}"),
                  s.result.norm),
      " lr " + short_exponent(s.result.lr),
      s.total_seconds ? fmt::format(" total {}", format_duration(*s.total_seconds))
                      : fmt::format(" eta {}", format_duration(s.seconds_left)),
      " " + rate_text(s.tokens_per_second) + " tok/s"};
  if (s.datasheet_mfu > 0) {
    parts.push_back(" " + percent(s.mfu) + "/" + percent(s.datasheet_mfu));
  } else if (s.mfu > 0) {
    parts.push_back(" " + percent(s.mfu));
  }
  parts.push_back(fmt::format(" {:.1f}G", static_cast<double>(s.resident_bytes) / (1 << 30)));
  std::string line;
  for (const std::string& part : parts) {
    if (line.size() + part.size() > most) break;
    line += part;
  }
  return line;
}

std::string progress_legend(double measured, const DatasheetPeak& datasheet) {
  std::string text =
      "each line: step, loss (smoothed), |g| gradient norm, lr learning rate, eta time left,\n"
      "tokens per second, MFU, GiB of memory of this process";
  const auto tera = [](double flops) { return fmt::format("{:.4g} TFLOP/s", flops / 1e12); };
  if (measured > 0) {
    text += "\nMFU: % of the matmul peak measured here, " + tera(measured) + " so far";
  }
  if (datasheet.flops > 0) {
    text += fmt::format("{}% of {}'s datasheet, {}", measured > 0 ? " / " : "\nMFU: - / ",
                        datasheet.gpu, tera(datasheet.flops));
  }
  return text;
}

Progress::Progress(int64_t first_step, int64_t steps, double flops_per_token, bool quiet,
                   double seconds_before, LinePace::Now now)
    : first_step_(first_step),
      steps_(steps),
      flops_per_token_(flops_per_token),
      seconds_before_(seconds_before),
      quiet_(quiet),
      terminal_(STDOUT_FILENO),
      pace_(terminal_.live(), std::move(now)),
      start_(pace_.now()) {}

Progress::~Progress() {
  if (live_ == 0) return;
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

double Progress::total_seconds() const { return seconds_before_ + seconds(); }

double Progress::seconds() const { return in_seconds(pace_.now() - start_); }

double Progress::tokens_per_second() const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>(tokens_) / elapsed : 0;
}

void Progress::take_peak_matmul(double rate) { peak_matmul_ = std::max(peak_matmul_, rate); }

double Progress::mfu() const {
  if (!(peak_matmul_ > 0)) return 0;
  return plausible_mfu(tokens_per_second() * flops_per_token_ / peak_matmul_);
}

/// A share below 5 % is small, but of a known peak.
double Progress::datasheet_mfu() const {
  if (!(datasheet_.flops > 0)) return 0;
  const double share = tokens_per_second() * flops_per_token_ / datasheet_.flops;
  return share <= 1 ? share : 0;
}

ProgressState Progress::state(const StepResult& s) const {
  const double rate = tokens_per_second();
  const double of_step =
      static_cast<double>(tokens_) / static_cast<double>(std::max<int64_t>(done_, 1));
  const double left = static_cast<double>(steps_ - s.step) * of_step;
  return {s,           steps_,          smoothed_,        rate,
          mfu(),       datasheet_mfu(), resident_bytes(), rate > 0 ? left / rate : 0,
          std::nullopt};
}

void Progress::steps(std::span<const StepResult> ended) {
  for (const StepResult& s : ended) {
    smoothed_ = kSmoothing * smoothed_ * weight_ + (1 - kSmoothing) * s.loss;
    weight_ = kSmoothing * weight_ + (1 - kSmoothing);
    smoothed_ /= weight_;
    tokens_ += s.tokens;
  }
  const StepResult& s = ended.back();
  last_ = s;
  done_ = s.step - first_step_;
  if (quiet_) return;
  if (s.step == steps_ && !terminal_.live()) return;  // finish() prints it
  if (pace_.take()) print_state(state(s));
}

std::function<void(double)> Progress::evaluation(const std::string& what) {
  // Without steps before it, a short evaluation adds no line to a log.
  if (!last_ && !terminal_.live()) pace_.printed();
  return [this, what, begin = pace_.now()](double share) {
    if (quiet_ || !pace_.take()) return;
    const std::string line = printable(share_line(what, share, in_seconds(pace_.now() - begin)));
    const bool fits = !terminal_.live() || line.size() < terminal_.columns();
    print_line(fits ? line : line.substr(0, utf8_boundary_before(line, terminal_.columns() - 1)));
  };
}

/// The cursor is after the live line. If the terminal has become narrower since, it has wrapped
/// that line into rows.
std::string Progress::erasure() const {
  if (live_ == 0) return "";
  const size_t rows_above = (live_ - 1) / terminal_.columns();
  return "\r" + (rows_above > 0 ? fmt::format("\033[{}A", rows_above) : "") + "\033[J";
}

void Progress::print_state(const ProgressState& s) {
  if (!explained_) note(progress_legend(peak_matmul_, datasheet_));
  explained_ = true;
  print_line(progress_line(s, terminal_.live() ? terminal_.columns() : std::string::npos));
}

void Progress::print_line(const std::string& line) {
  if (!terminal_.live()) {
    print_status(line + "\n");
    return;
  }
  print_status_unescaped(erasure() + line);
  live_ = line.size();
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  print_status_unescaped(erasure() + printable(text) + "\n");
  live_ = 0;
}

void Progress::finish() {
  if (quiet_ || !last_) return;
  ProgressState s = state(*last_);
  s.total_seconds = total_seconds();
  print_state(s);
  if (live_ > 0) print_status("\n");
  live_ = 0;
}

}  // namespace bamtrain

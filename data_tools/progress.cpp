#include "data_tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/print_message.h"
#include "core/short_number.h"
#include "core/terminal.h"
#include "core/with_commas.h"

namespace bamtrain {

std::string counted(int64_t n, const std::string& noun) {
  return with_commas(n) + " " + noun + (n == 1 ? "" : "s");
}

namespace {

double share_done(int64_t taken, int64_t total) {
  return std::min(1.0, static_cast<double>(taken) / static_cast<double>(total));
}

double rate(int64_t now, int64_t before, double seconds) {
  return seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

bool knows_share(const InputPace& p) {
  return p.total && *p.total > 0 && p.counts.taken > p.before.taken;
}

std::string tokens_rate(const InputPace& p) {
  return short_number(rate(p.counts.tokens, p.before.tokens, p.seconds)) + " tok/s";
}

/// REQUIRES: knows_share.
std::string time_left(const InputPace& p) {
  const double share = share_done(p.counts.taken, *p.total);
  const double done = share - share_done(p.before.taken, *p.total);
  const auto left = static_cast<int64_t>(done > 0 ? p.seconds * (1 - share) / done + 0.5 : 0);
  return fmt::format("{}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

}  // namespace

std::string progress_line(const InputPace& p) {
  std::string rates =
      fmt::format("  {:.1f} MB/s", rate(p.counts.text_bytes, p.before.text_bytes, p.seconds) / 1e6);
  if (p.counts.tokens > 0) rates += "  " + tokens_rate(p);
  if (!knows_share(p)) return counted(p.counts.documents, "document") + rates;
  constexpr size_t kBar = 20;
  const double share = share_done(p.counts.taken, *p.total);
  std::string bar(static_cast<size_t>(kBar * share), '=');
  bar.resize(kBar, ' ');
  return fmt::format("[{}] {:3.0f} %{}  {}", bar, 100 * share, rates, time_left(p));
}

std::string files_line(int64_t done, int64_t of, const std::string& path, const InputPace& p) {
  std::string line = fmt::format("{} of {}, {} the last: {}, {}", done, counted(of, "file"), path,
                                 counted(p.counts.tokens, "token"), tokens_rate(p));
  if (knows_share(p)) line += ", " + time_left(p);
  return line;
}

InputProgress::InputProgress(std::FILE* out, std::optional<int64_t> total, const Counts& before)
    : out_(out),
      total_(total),
      terminal_(::isatty(::fileno(out)) == 1 && environment_allows_controls()),
      before_(before),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_),
      last_files_(begin_) {}

InputProgress::~InputProgress() {
  if (shown_) {
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
  }
}

double InputProgress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void InputProgress::update(const Counts& counts) {
  counts_ = counts;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  shown_ = true;
  std::fputs(("\r" + progress_line({counts, before_, total_, seconds()}) + "\x1b[K").c_str(), out_);
  std::fflush(out_);
}

void InputProgress::print_files_done(int64_t done, int64_t of, const std::string& path,
                                     double seconds_between) {
  const auto now = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(now - last_files_).count() < seconds_between) return;
  last_files_ = now;
  if (std::exchange(shown_, false)) std::fputs("\r\x1b[K", out_);
  print_message(out_, files_line(done, of, path, {counts_, before_, total_, seconds()}));
}

}  // namespace bamtrain

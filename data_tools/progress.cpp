#include "data_tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/short_number.h"
#include "core/terminal.h"

namespace bamtrain {

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string counted(int64_t n, const std::string& noun) {
  return with_commas(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string progress_line(const InputProgress::Counts& counts, std::optional<int64_t> total,
                          double seconds) {
  const auto rate = [seconds](int64_t n) {
    return seconds > 0 ? static_cast<double>(n) / seconds : 0;
  };
  std::string rates = fmt::format("  {:.1f} MB/s", rate(counts.text_bytes) / 1e6);
  if (counts.tokens > 0) rates += "  " + short_number(rate(counts.tokens)) + " tok/s";
  if (!total || *total <= 0 || counts.taken <= 0) {
    return counted(counts.documents, "document") + rates;
  }
  constexpr size_t kBar = 20;
  const double share =
      std::min(1.0, static_cast<double>(counts.taken) / static_cast<double>(*total));
  const auto left = static_cast<int64_t>(seconds * (1 - share) / share + 0.5);
  std::string bar(static_cast<size_t>(kBar * share), '=');
  bar.resize(kBar, ' ');
  return fmt::format("[{}] {:3.0f} %{}  {}:{:02}:{:02} left", bar, 100 * share, rates, left / 3600,
                     left / 60 % 60, left % 60);
}

InputProgress::InputProgress(std::FILE* out, std::optional<int64_t> total)
    : out_(out),
      total_(total),
      terminal_(::isatty(::fileno(out)) == 1 && environment_allows_controls()),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

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
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  shown_ = true;
  std::fputs(("\r" + progress_line(counts, total_, seconds()) + "\x1b[K").c_str(), out_);
  std::fflush(out_);
}

}  // namespace bamtrain

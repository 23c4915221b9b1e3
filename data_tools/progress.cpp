#include "data_tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

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

std::string progress_line(const Progress::Counts& counts, std::optional<int64_t> total,
                          double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(counts.text_bytes) / seconds / 1e6 : 0;
  std::string line = fmt::format("{}  {}  {:.1f} MB/s", counted(counts.documents, "document"),
                                 counted(counts.tokens, "token"), rate);
  if (!total || *total <= 0 || counts.taken <= 0) return line;
  const double share =
      std::min(1.0, static_cast<double>(counts.taken) / static_cast<double>(*total));
  const auto left = static_cast<int64_t>(seconds * (1 - share) / share + 0.5);
  return line + fmt::format("  {:.0f} %  {}:{:02}:{:02} left", 100 * share, left / 3600,
                            left / 60 % 60, left % 60);
}

Progress::Progress(std::FILE* out, std::optional<int64_t> total)
    : out_(out),
      total_(total),
      terminal_(::isatty(::fileno(out)) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

Progress::~Progress() {
  if (terminal_ && shown_) {
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
  }
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::update(const Counts& counts) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(terminal_ ? 200 : 30000)) return;
  last_ = now;
  shown_ = true;
  const std::string line = progress_line(counts, total_, seconds());
  std::fprintf(out_, terminal_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
  std::fflush(out_);
}

}  // namespace bamtrain

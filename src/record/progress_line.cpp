#include "record/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/print_message.h"
#include "core/utf8.h"
#include "record/progress.h"

namespace bamtrain {

std::string share_line(const std::string& what, double share, std::optional<double> seconds) {
  const std::string line = fmt::format("{}: {:.0f}%", what, 100 * share);
  if (!seconds || !(share > 0 && share < 1)) return line;
  return line + fmt::format(", {} left", format_duration(*seconds * (1 - share) / share));
}

ProgressLine::ProgressLine(bool shown, LinePace::Now now)
    : shown_(shown), terminal_(STDERR_FILENO), pace_(terminal_.live(), std::move(now)) {
  if (!terminal_.live()) pace_.printed();  // a short evaluation adds no line to a log
}

void ProgressLine::print(const std::string& line) const {
  if (!terminal_.live()) {
    print_message(stderr, line);
  } else {
    std::fputs(("\r\033[K" + printable(line)).c_str(), stderr);
  }
}

void ProgressLine::show(const std::string& what, double share) const {
  if (shown_ && pace_.take()) print(share_line(what, share, std::nullopt));
}

std::function<void(double)> ProgressLine::progress(const std::string& what) const {
  return [this, what, begin = pace_.now()](double share) {
    if (!shown_ || !pace_.take()) return;
    print(share_line(what, share, in_seconds(pace_.now() - begin)));
  };
}

void ProgressLine::clear() const {
  if (shown_ && terminal_.live()) std::fputs("\r\033[K", stderr);
}

}  // namespace bamtrain

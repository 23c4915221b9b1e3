#include "record/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "record/progress.h"

namespace bamtrain {

ProgressLine::ProgressLine(bool shown) : shown_(shown), terminal_(STDERR_FILENO) {}

void ProgressLine::show(const std::string& what, double share) const {
  if (!shown_ || !terminal_.live()) return;
  std::fputs(fmt::format("\r\033[K{}: {:.0f}%", what, 100 * share).c_str(), stderr);
}

std::function<void(double)> ProgressLine::progress(const std::string& what) const {
  return [this, what, begin = std::chrono::steady_clock::now()](double share) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const double left = share > 0 ? spent.count() * (1 - share) / share : 0;
    show(what, share);
    if (share > 0 && share < 1 && shown_ && terminal_.live()) {
      std::fputs(fmt::format(", {} left", format_duration(left)).c_str(), stderr);
    }
  };
}

void ProgressLine::clear() const {
  if (shown_ && terminal_.live()) std::fputs("\r\033[K", stderr);
}

}  // namespace bamtrain

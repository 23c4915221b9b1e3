#include "record/data_wait.h"

#include <fmt/format.h>

#include <utility>

namespace bamtrain {

void DataWait::steps(std::span<const StepResult> ended) {
  for (const StepResult& s : ended) {
    line_ += s.data_wait;
    interval_ += s.data_wait;
  }
  line_steps_ += static_cast<int64_t>(ended.size());
}

double DataWait::take_mean() {
  const auto steps = static_cast<double>(std::exchange(line_steps_, 0));
  const double seconds = std::exchange(line_, 0);
  return steps > 0 ? 1000 * seconds / steps : 0;
}

std::optional<std::string> DataWait::take_warning(double seconds) {
  const double elapsed = seconds - interval_begin_;
  if (elapsed < kInterval) return std::nullopt;
  const double share = std::exchange(interval_, 0) / elapsed;
  interval_begin_ = seconds;
  if (share <= kShare || (told_ && seconds - *told_ < kSilence)) return std::nullopt;
  told_ = seconds;
  return fmt::format(
      "the steps of the last {:.0f} s waited {:.0f} % of the time for their tokens: the disk of "
      "the "
      "shards sets the pace (data_wait in metrics.jsonl)",
      elapsed, 100 * share);
}

}  // namespace bamtrain

#include "report/metrics_history.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace bamtrain {

namespace {

// The smoothed loss is a running mean over about the last fiftieth of the lines, at least ten.
constexpr double kShare = 1.0 / 50, kLeastSteps = 10;

/// The plotted quantities of a line, except the smoothed loss.
constexpr double MetricsLine::*kDrawn[] = {
    &MetricsLine::loss,
    &MetricsLine::lr,
    &MetricsLine::grad_norm,
    &MetricsLine::tokens_per_second,
    &MetricsLine::validation_loss,
    &MetricsLine::mfu,
    &MetricsLine::data_wait,
    &MetricsLine::validation_accuracy,
    &MetricsLine::validation_exact_match,
};
constexpr size_t kMostOfAColumn = 2 + 2 * (std::size(kDrawn) + 1) + 1;
static_assert(kMostOfAColumn < MetricsHistory::kMost / MetricsHistory::kColumns);

}  // namespace

void MetricsHistory::add(const MetricsLine& line) {
  require(lines_.empty() || line.step > lines_.back().step, "steps that ascend");
  lines_.reserve(kMost);
  if (lines_.size() == kMost) downsample();
  ++added_;
  const auto n = static_cast<double>(added_);
  const double weight = 1 / std::max(std::min(n, kLeastSteps), n * kShare);
  const double before = lines_.empty() ? line.loss : lines_.back().smoothed_loss;
  lines_.push_back({line, before + weight * (line.loss - before)});
}

void MetricsHistory::downsample() {
  const int64_t first = lines_.front().step;
  const double width = static_cast<double>(lines_.back().step - first + 1) / kColumns;
  const auto column = [&](size_t i) {
    return static_cast<int64_t>(static_cast<double>(lines_[i].step - first) / width);
  };
  std::vector<bool> kept(lines_.size());
  for (size_t begin = 0, end = 0; begin < lines_.size(); begin = end) {
    while (end < lines_.size() && column(end) == column(begin)) ++end;
    kept[begin] = kept[end - 1] = true;
    const auto keep_extremes = [&](const auto& value) {
      size_t low = end, high = end;
      for (size_t i = begin; i < end; ++i) {
        if (!std::isfinite(value(lines_[i]))) continue;
        if (low == end || value(lines_[i]) < value(lines_[low])) low = i;
        if (high == end || value(lines_[i]) > value(lines_[high])) high = i;
      }
      if (low != end) kept[low] = kept[high] = true;
    };
    for (double MetricsLine::*const drawn : kDrawn) {
      keep_extremes([&](const HistoryLine& line) { return line.*drawn; });
    }
    keep_extremes([](const HistoryLine& line) { return line.smoothed_loss; });
    for (size_t i = end; i-- > begin;) {
      if (!std::isfinite(lines_[i].validation_loss)) continue;
      kept[i] = true;
      break;
    }
  }
  size_t n = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (kept[i]) lines_[n++] = lines_[i];
  }
  lines_.resize(n);
}

}  // namespace bamtrain

#include "data/sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"

namespace bamtrain {

namespace {

std::vector<double> turn_weights(const Loader* shards, const std::vector<TaskSource>& tasks) {
  std::vector<double> weights;
  if (shards) {
    double sum = 0;
    for (const Source& s : shards->sources()) sum += s.weight;
    weights.push_back(sum);
  }
  for (const TaskSource& t : tasks) weights.push_back(t.weight);
  return weights;
}

}  // namespace

Sequences::Sequences(std::unique_ptr<Loader> shards, std::vector<TaskSource> tasks,
                     int64_t sequence_length, int64_t per_step)
    : shards_(std::move(shards)),
      tasks_(std::move(tasks)),
      sequence_length_(sequence_length),
      per_step_(per_step),
      turns_(turn_weights(shards_.get(), tasks_)) {
  require(per_step >= 1, "a sequence in a step at least");
  for (const TaskSource& t : tasks_) {
    const int64_t most = t.task->most_inputs();
    if (most <= sequence_length) continue;
    throw Error(ExitCode::config, "data.sequence_length",
                fmt::format("at least {}, the most inputs of a sequence of \"{}\" with sources of "
                            "up to {}",
                            most, t.task->info().name, t.task->lengths().longest),
                std::to_string(sequence_length),
                "raise it, leave it out, or shorten the task's length");
  }
}

const std::vector<Source>& Sequences::shard_sources() const {
  static const std::vector<Source> kNone;
  return shards_ ? shards_->sources() : kNone;
}

int64_t Sequences::length(const Interleave::Place& p, int64_t step) const {
  const Task& t = task(p.source);
  return t.length(t.info().length_of_step ? step : p.number);
}

void Sequences::order(int64_t step, int64_t B, int64_t groups, std::vector<int64_t>* order) {
  const int64_t first = step * per_step_, per_group = per_step_ / groups;
  order->resize(static_cast<size_t>(per_step_));
  if (shards_) {
    for (int64_t i = 0; i < per_step_; ++i) (*order)[static_cast<size_t>(i)] = first + i;
    return;
  }
  sorted_.clear();
  for (int64_t k = first; k < first + per_step_; ++k) {
    sorted_.emplace_back(length(place(k), step), k);
  }
  std::sort(sorted_.begin(), sorted_.end());
  // Microbatch m of the step goes to group m % groups.
  for (int64_t i = 0; i < per_step_; ++i) {
    const int64_t m = i / B, at = m % groups * per_group + m / groups * B + i % B;
    (*order)[static_cast<size_t>(at)] = sorted_[static_cast<size_t>(i)].second;
  }
}

/// Splits windows of T + 1 tokens into inputs and, shifted by one, targets.
int64_t Sequences::read_windows(int64_t first, int64_t count, int32_t* inputs, int32_t* targets) {
  const int64_t T = sequence_length_;
  if (std::ssize(windows_) < count * (T + 1)) windows_.resize(static_cast<size_t>(count * (T + 1)));
  shards_->read(first, count, windows_.data());
  for (int64_t b = 0; b < count; ++b) {
    const int32_t* window = windows_.data() + b * (T + 1);
    std::copy_n(window, T, inputs + b * T);
    std::copy_n(window + 1, T, targets + b * T);
  }
  return T;
}

int64_t Sequences::read(std::span<const int64_t> numbers, int64_t step, int32_t* inputs,
                        int32_t* targets, SequenceCounts* counts, int32_t* lengths) {
  const auto n = std::ssize(numbers);
  const int64_t T = sequence_length_;
  if (lengths) std::fill_n(lengths, n, static_cast<int32_t>(T));
  if (tasks_.empty()) {
    *counts = {n * T, n * T, T};
    return read_windows(numbers[0], n, inputs, targets);
  }
  if (std::ssize(examples_) < n) examples_.resize(static_cast<size_t>(n));
  parallel_for(n, [&](int64_t b) {
    const Interleave::Place p = place(numbers[static_cast<size_t>(b)]);
    if (is_window(p.source)) return;
    task(p.source).draw(p.number, length(p, step), &examples_[static_cast<size_t>(b)]);
  });
  int64_t columns = T;
  if (!shards_) {
    int64_t longest = 0;
    for (int64_t b = 0; b < n; ++b) {
      longest = std::max(longest, std::ssize(examples_[static_cast<size_t>(b)].inputs));
    }
    columns = std::min(ceil_div(longest, kColumns) * kColumns, T);
  }
  *counts = {};
  for (int64_t b = 0; b < n; ++b) {
    int32_t *const in = inputs + b * columns, *const out = targets + b * columns;
    const Interleave::Place p = place(numbers[static_cast<size_t>(b)]);
    if (is_window(p.source)) {
      read_windows(p.number, 1, in, out);
      counts->inputs += T;
      counts->targets += T;
      counts->longest = T;
      continue;
    }
    const Example& e = examples_[static_cast<size_t>(b)];
    const auto size = std::ssize(e.inputs);
    if (lengths) lengths[b] = static_cast<int32_t>(size);
    std::copy_n(e.inputs.data(), size, in);
    std::copy_n(e.targets.data(), size, out);
    std::fill_n(in + size, columns - size, task(p.source).info().padding);
    std::fill_n(out + size, columns - size, kIgnoreIndex);
    counts->inputs += size;
    counts->longest = std::max<int64_t>(counts->longest, size);
    counts->targets += size - std::count(e.targets.begin(), e.targets.end(), kIgnoreIndex);
  }
  return columns;
}

void Sequences::reserve_ahead(int64_t count) {
  if (shards_) shards_->reserve_ahead(count);
}

void Sequences::prefetch(int64_t first, int64_t count) {
  if (!shards_) return;
  if (tasks_.empty()) return shards_->prefetch(first, count);
  int64_t begin = -1, end = 0;  // range of windows among them
  for (int64_t k = first; k < first + count; ++k) {
    const Interleave::Place p = place(k);
    if (!is_window(p.source)) continue;
    if (begin < 0) begin = p.number;
    end = p.number + 1;
  }
  if (begin >= 0) shards_->prefetch(begin, end - begin);
}

}  // namespace bamtrain

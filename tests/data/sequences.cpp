#include "data/sequences.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "tasks/registry.h"

namespace bamtrain::testing {
namespace {

std::shared_ptr<const Task> task(const std::string& name, LengthRange lengths) {
  const TaskInfo& info = *find_task(name);
  return std::make_shared<const Task>(info, default_options(info.options), lengths, 1, "train");
}

std::vector<TaskSource> copies() { return {{task("copy", {4, 20}), 1}}; }

struct Batch {
  int64_t t = 0;
  SequenceCounts counts;
  std::vector<int32_t> inputs, targets, lengths;
};

Batch read(Sequences& s, const std::vector<int64_t>& numbers, int64_t T, int64_t step = 0) {
  Batch b;
  b.inputs.assign(numbers.size() * static_cast<size_t>(T), -7);
  b.targets = b.inputs;
  b.lengths.assign(numbers.size(), -7);
  b.t = s.read(numbers, step, b.inputs.data(), b.targets.data(), &b.counts, b.lengths.data());
  return b;
}

TEST_CASE("rows are a task's sequences, padded to the longest's multiple of columns") {
  Sequences s(nullptr, copies(), 42, 8);
  const std::vector<int64_t> numbers = {3, 0, 11};
  const Batch b = read(s, numbers, 42);
  size_t longest = 0;
  SequenceCounts counts;
  for (size_t row = 0; row < numbers.size(); ++row) {
    const std::shared_ptr<const Task> t = task("copy", {4, 20});
    Example e;
    t->draw(numbers[row], t->length(numbers[row]), &e);
    longest = std::max(longest, e.inputs.size());
    CHECK(b.lengths[row] == std::ssize(e.inputs));
    for (int64_t i = 0; i < b.t; ++i) {
      const auto at = row * static_cast<size_t>(b.t) + static_cast<size_t>(i);
      const bool inside = i < std::ssize(e.inputs);
      CHECK(b.inputs[at] == (inside ? e.inputs[static_cast<size_t>(i)] : t->info().padding));
      CHECK(b.targets[at] == (inside ? e.targets[static_cast<size_t>(i)] : kIgnoreIndex));
      if (inside) ++counts.inputs;
      if (inside && e.targets[static_cast<size_t>(i)] != kIgnoreIndex) ++counts.targets;
    }
  }
  CHECK(b.t == static_cast<int64_t>(std::min<size_t>((longest + 15) / 16 * 16, 42)));
  CHECK(b.counts.inputs == counts.inputs);
  CHECK(b.counts.targets == counts.targets);
}

TEST_CASE("a step's micro-batches have sequences of about one length, and lanes all of them") {
  Sequences s(nullptr, copies(), 42, 32);
  const std::shared_ptr<const Task> t = task("copy", {4, 20});
  std::vector<int64_t> order;
  for (const int64_t step : {0, 5}) {
    for (const int64_t lanes : {1, 2, 4}) {
      s.order(step, 4, lanes, &order);
      std::vector<int64_t> all = order;
      std::sort(all.begin(), all.end());
      for (int64_t i = 0; i < 32; ++i) CHECK(all[static_cast<size_t>(i)] == step * 32 + i);
      // Sequences are sorted by length and dealt out. The longest of a microbatch is at most the
      // shortest of the next, whichever gradient accumulation group has it.
      std::vector<std::pair<int64_t, int64_t>> spans;
      for (size_t m = 0; m < 8; ++m) {
        int64_t least = 99, most = 0;
        for (size_t i = 4 * m; i < 4 * m + 4; ++i) {
          least = std::min(least, t->length(order[i]));
          most = std::max(most, t->length(order[i]));
        }
        spans.emplace_back(least, most);
      }
      std::sort(spans.begin(), spans.end());
      for (size_t m = 1; m < 8; ++m) CHECK(spans[m - 1].second <= spans[m].first);
      // Every group has a microbatch from each part of the range.
      if (lanes == 2) CHECK(t->length(order[0]) <= t->length(order[16]));
    }
  }
}

TEST_CASE("a step whose sequences share a length has that of the step") {
  Sequences s(nullptr, {{task("even_pairs", {1, 40}), 1}}, 41, 4);
  const std::shared_ptr<const Task> t = task("even_pairs", {1, 40});
  for (int64_t step = 0; step < 5; ++step) {
    std::vector<int64_t> order;
    s.order(step, 4, 1, &order);
    const Batch b = read(s, order, 41, step);
    CHECK(b.counts.inputs == 4 * (t->length(step) + 1));
    CHECK(b.counts.targets == 4);
  }
}

TEST_CASE("tasks and shards take turns by their weights") {
  const TemporaryFolder folder;
  write_shards(folder, {counting(1, 1000)});
  std::vector<Source> sources = {
      {std::make_shared<const ShardSet>(ShardSet::open(folder.path(), 50000)), 3}};
  auto loader = std::make_unique<Loader>(sources, 42, 1, false);
  const Loader alone(sources, 42, 1, false);
  Sequences s(std::move(loader), copies(), 42, 16);
  std::vector<int64_t> order;
  s.order(0, 4, 1, &order);
  std::vector<int64_t> numbers(16);
  std::iota(numbers.begin(), numbers.end(), 0);
  CHECK(order == numbers);
  s.reserve_ahead(16);
  s.prefetch(0, 16);
  const Batch b = read(s, numbers, 42);
  CHECK(b.t == 42);
  int64_t windows = 0, sequences = 0;
  for (size_t row = 0; row < 16; ++row) {
    const bool of_task =
        std::find(b.targets.begin() + static_cast<int64_t>(row * 42),
                  b.targets.begin() + static_cast<int64_t>(row * 42 + 42),
                  kIgnoreIndex) != b.targets.begin() + static_cast<int64_t>(row * 42 + 42);
    if (of_task) {
      ++sequences;
      continue;
    }
    std::vector<int32_t> window(43);
    alone.read(windows++, 1, window.data());
    CHECK(std::equal(window.begin(), window.end() - 1,
                     b.inputs.begin() + static_cast<int64_t>(row * 42)));
    CHECK(std::equal(window.begin() + 1, window.end(),
                     b.targets.begin() + static_cast<int64_t>(row * 42)));
  }
  CHECK(windows == 12);
  CHECK(sequences == 4);
}

TEST_CASE("a task whose sequences may be longer than a run's is refused") {
  CHECK_THROWS_AS(Sequences(nullptr, copies(), 41, 4), Error);
  CHECK_NOTHROW(Sequences(nullptr, copies(), 42, 4));
}

}  // namespace
}  // namespace bamtrain::testing

#include "tasks/task.h"

#include <set>

#include "catch.h"
#include "core/error.h"
#include "tasks/registry.h"

namespace bamtrain {
namespace {

Task open(const TaskInfo& info, LengthRange lengths, uint64_t seed = 1,
          const std::string& set = "train") {
  return Task(info, default_options(info.options), lengths, seed, set);
}

TEST_CASE("a sequence is a function of seed, set, index and length, asked in any order") {
  for (const TaskInfo& info : all_tasks()) {
    INFO(info.name);
    const LengthRange lengths = {30, 60};
    const Task task = open(info, lengths), same = open(info, lengths);
    Example a, b;
    int different = 0;
    for (const int64_t index : {int64_t{0}, int64_t{7}, int64_t{1'000'000'007}}) {
      for (const int64_t length : {30, 47, 60}) {
        task.draw(index, length, &a);
        same.draw(index + 1, 60, &b);  // a different draw in between
        same.draw(index, length, &b);
        CHECK(a == b);
        open(info, lengths, 2).draw(index, length, &b);
        different += a != b;
        open(info, lengths, 1, "val").draw(index, length, &b);
        different += a != b;
        task.draw(index + 1, length, &b);
        different += a != b;
      }
    }
    CHECK(different >= 26);  // of 27: short answers may coincide, sources hardly ever
  }
}

TEST_CASE("what a task declares holds for its sequences") {
  for (const TaskInfo& info : all_tasks()) {
    INFO(info.name);
    CHECK(info.lengths.shortest >= info.least_length);
    const Task task = open(info, {info.least_length, 90});
    for (int64_t index = 0; index < 300; ++index) {
      const int64_t length = task.length(index);
      CHECK(length >= info.least_length);
      CHECK(length <= 90);
      Example e;
      task.draw(index, length, &e);
      REQUIRE(e.inputs.size() == e.targets.size());
      CHECK(std::ssize(e.inputs) <= info.most_inputs(length));
      int64_t targets = 0;
      for (size_t i = 0; i < e.inputs.size(); ++i) {
        CHECK((e.inputs[i] >= 0 && e.inputs[i] < info.inputs));
        CHECK((e.targets[i] >= kIgnoreIndex && e.targets[i] < info.classes));
        targets += e.targets[i] != kIgnoreIndex;
        CHECK_FALSE(info.symbol(e.inputs[i]).empty());
        if (e.targets[i] != kIgnoreIndex) CHECK_FALSE(info.label(e.targets[i]).empty());
      }
      CHECK(targets >= 1);
    }
    CHECK((info.padding >= 0 && info.padding < info.inputs));
  }
}

TEST_CASE("lengths are uniform over their range") {
  const Task task = open(*find_task("copy"), {10, 13});
  std::vector<int> counts(4);
  for (int64_t n = 0; n < 4000; ++n) ++counts[static_cast<size_t>(task.length(n) - 10)];
  for (int n : counts) CHECK(std::abs(n - 1000) < 150);  // five standard deviations
}

TEST_CASE("lengths that a task has not are refused") {
  const TaskInfo& mqmtar = *find_task("mqmtar");
  CHECK_THROWS_AS(open(mqmtar, {7, 64}), Error);
  CHECK_THROWS_AS(open(mqmtar, {32, 31}), Error);
  CHECK_NOTHROW(open(mqmtar, {8, 8}));
  // As many pairs as there are keys; one more is refused.
  Example e;
  open(mqmtar, {75000, 75000}).draw(0, 75000, &e);
  CHECK(std::ssize(e.inputs) == 75000 / 10000 * 10000 + 2 + 24);
  CHECK_THROWS_AS(open(mqmtar, {8, 75001}), Error);
  for (const TaskInfo& info : all_tasks()) {
    INFO(info.name);
    Task(info, default_options(info.options), {info.most_length, info.most_length}, 1, "train")
        .draw(0, info.most_length, &e);
    CHECK(std::ssize(e.inputs) <= info.most_inputs(info.most_length));
  }
}

TEST_CASE("the keys of mqmtar belong to a set and its lengths") {
  const auto first_key = [](const Task& task) {
    Example e;
    task.draw(0, 64, &e);
    size_t at = 1;
    while (e.inputs[at] == 0) ++at;  // spaces
    return std::pair(e.inputs[at], e.inputs[at + 1]);
  };
  const TaskInfo& info = *find_task("mqmtar");
  std::set<std::pair<int32_t, int32_t>> keys;
  keys.insert(first_key(open(info, {32, 64})));
  keys.insert(first_key(open(info, {64, 64})));
  keys.insert(first_key(open(info, {32, 64}, 1, "val")));
  CHECK(keys.size() == 3);
}

TEST_CASE("tasks are found by their names alone") {
  std::set<std::string> names;
  for (const TaskInfo& t : all_tasks()) names.insert(t.name);
  CHECK(names.size() == all_tasks().size());
  CHECK(find_task("copy")->name == "copy");
  CHECK(find_task("Copy") == nullptr);
}

}  // namespace
}  // namespace bamtrain

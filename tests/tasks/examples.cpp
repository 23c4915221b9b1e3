// Sequences whose answers were worked out by hand, as bamdata synth prints them. They also pin the
// random streams: a run resumed by a later program must get the same sequences.

#include <sstream>
#include <string>

#include "catch.h"
#include "tasks/registry.h"

namespace bamtrain {
namespace {

struct Row {
  const char* task;
  int64_t length, index;
  const char *inputs, *targets;  // words as the task prints them; only places with targets
  const char* option = nullptr;  // name=value
};

constexpr Row kRows[] = {
    {"mqmtar", 16, 0,
     "<bos> 0 117 99 1 244 173 0 0 0 144 122 1 176 134 0 0 2 117 99 2 117 99 2 117 99 2 117 99 "
     "<sep> 2 244 173 2 244 173 2 244 173 2 244 173",
     "2 244 173 2 244 173 2 244 173 2 244 173 <eos>"},
    {"mqmtar", 16, 1, "<bos> 0 53 53 1 150 27 0 0 0 0 123 98 1 176 246 0 2 53 53 <sep> 2 150 27",
     "2 150 27 <eos>", "queries=1"},
    {"copy", 6, 0, "<bos> 23 25 11 21 17 19 <sep> 23 25 11 21 17 19", "23 25 11 21 17 19 <eos>"},
    {"reverse", 6, 0, "<bos> 3 14 29 24 12 24 <sep> 24 12 24 29 14 3", "24 12 24 29 14 3 <eos>"},
    {"sort", 6, 0, "<bos> 2 18 8 13 29 20 <sep> 2 8 13 18 20 29", "2 8 13 18 20 29 <eos>"},
    {"two_back", 6, 0, "<bos> 0 15 14 9 13 13 5 <eos>", "0 0 0 15 14 9 13"},
    {"local_count", 30, 0, "<bos> 15 15 15 15 15 15 15 15 <eos>", "0 1 2 3 4 5 6 7"},
    {"flip_flop", 30, 0, "<bos> 2 0 3 1 3 0 3 0 3 0 3 1 3 0 2 1 3 1 3 1 3 1 3 1 3 1 3 1 4 1",
     "1 <eos>"},
    {"flip_flop", 13, 0, "<bos> 2 0 2 1 2 0 2 0 2 0 4 0", "0 <eos>", "ignore=dense"},
    {"max_retrieval", 5, 3, "?:0.338500 6:0.102886 8:0.710838 2:0.115370 6:0.008359 4:0.026225",
     "8"},
    {"max_retrieval", 1, 0, "?:0.512371 4:0.855151", "4"},
    {"even_pairs", 9, 0, "1 0 1 0 1 1 0 0 1 2", "0"},
    {"modular_arithmetic_simple", 9, 0, "2 - 4 - 0 + 4 + 3 _", "0"},
    {"modular_arithmetic_simple", 11, 4, "1 * 2 - 3 + 4 * 4 * 1 _", "0"},
    {"parity_check", 5, 0, "1 1 0 0 0 2", "0"},
    {"cycle_navigation", 9, 0, "2 2 1 0 1 2 1 0 2 3", "2"},
    {"stack_manipulation", 9, 0, "0 1 4 3 3 4 3 4 3 5 5 5 5 5 5 5 5 5 5", "0 1 0 1 0 0 1 1 0 2"},
    {"stack_manipulation", 9, 2, "0 0 1 3 3 3 4 2 3 5 5 5 5 5 5 5 5 5 5", "0 0 0 0 1 0 0 2 0 0"},
    {"stack_manipulation", 1, 0, "0 5 5", "0 2"},
    {"reverse_string", 5, 0, "0 1 0 1 1 2 2 2 2 2", "1 1 0 1 0"},
    {"modular_arithmetic", 9, 0, "( ( - 0 ) - - 3 ) _", "3"},
    {"modular_arithmetic", 14, 2, "( 3 * ( ( - 3 * 3 ) * 0 ) ) _", "0"},
    {"solve_equation", 9, 0, "( - x - - 2 ) = 4 _", "3"},
    {"solve_equation", 16, 1, "( - 3 - ( 1 + ( 0 + x ) ) ) = 2 _", "4"},
    {"solve_equation", 2, 0, "0 0 _", "0"},
    {"duplicate_string", 5, 0, "0 0 0 1 1 2 2 2 2 2 2 2 2 2 2", "0 0 0 1 1 0 0 0 1 1"},
    {"missing_duplicate", 9, 0, "0 1 0 2 0 1 0 1 3 4", "1"},
    {"missing_duplicate", 1, 0, "1 4", "1"},
    {"odds_first", 9, 0, "0 0 1 1 0 0 0 0 1 2 2 2 2 2 2 2 2 2", "0 1 0 0 0 1 0 0 1"},
    {"odds_first", 9, 0, "0 0 1 1 0 0 0 0 1 2 2 2 2 2 2 2 2 2", "0 1 0 0 1 0 1 0 0", "first=odd"},
    {"binary_addition", 9, 0, "1 2 0 1 1 1 1 0 0 3 3 3 3 3 3 3 3 3 3", "1 1 1 1 1 2 0 0 0 0"},
    {"binary_addition", 9, 1, "0 1 1 1 1 2 0 0 1 3 3 3 3 3 3 3 3 3 3", "0 1 0 0 0 1 2 0 0 0"},
    {"binary_addition", 2, 0, "0 0 3 3 3", "0 2 0"},
    {"binary_multiplication", 9, 0, "1 0 0 0 1 1 1 2 1 3 3 3 3 3 3 3 3 3", "1 0 0 0 1 1 1 2 0"},
    {"binary_multiplication", 9, 1, "1 0 0 2 0 1 1 0 0 3 3 3 3 3 3 3 3 3", "0 1 1 2 0 0 0 0 0"},
    {"binary_multiplication", 1, 0, "0 3", "2"},
    {"binary_multiplication", 2, 0, "0 1 3 3", "0 2"},
    {"compute_sqrt", 9, 0, "0 0 0 0 0 0 1 1 1 2 2 2 2 2", "0 0 0 1 0"},
    {"compute_sqrt", 9, 1, "0 0 1 0 0 0 0 0 0 2 2 2 2 2", "0 1 0 0 0"},
    {"compute_sqrt", 1, 0, "1 2", "1"},
    {"bucket_sort", 9, 0, "2 2 4 2 4 3 3 0 2 5 5 5 5 5 5 5 5 5", "0 2 2 2 2 3 3 4 4"},
};

TEST_CASE("sequences are those that were worked out by hand") {
  for (const Row& row : kRows) {
    INFO(row.task << " " << row.index << ", length " << row.length);
    const TaskInfo& info = *find_task(row.task);
    Options options = default_options(info.options);
    if (row.option) {
      const std::string text = row.option;
      const size_t equals = text.find('=');
      const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
      if (std::holds_alternative<double>(options.values().at(name))) {
        options.set(name, std::stod(value));
      } else {
        options.set(name, value);
      }
    }
    const Task task(info, options, {row.length, row.length}, 0, "train");
    Example e;
    task.draw(row.index, row.length, &e);
    std::ostringstream inputs, targets;
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      inputs << (i > 0 ? " " : "") << info.symbol(e.inputs[i]);
      if (e.targets[i] == kIgnoreIndex) continue;
      targets << (targets.str().empty() ? "" : " ") << info.label(e.targets[i]);
    }
    CHECK(inputs.str() == row.inputs);
    CHECK(targets.str() == row.targets);
  }
}

TEST_CASE("targets stand where they are asked for") {
  const auto drawn = [](const char* name) {
    const TaskInfo& info = *find_task(name);
    Example e;
    Task(info, default_options(info.options), {30, 30}, 0, "train").draw(0, 30, &e);
    return e;
  };
  // Decoder tasks: each target is the next input, and the last one is eos.
  for (const char* name : {"mqmtar", "copy", "reverse", "sort", "flip_flop"}) {
    const Example e = drawn(name);
    for (size_t i = 0; i + 1 < e.inputs.size(); ++i) {
      if (e.targets[i] != kIgnoreIndex) CHECK(e.targets[i] == e.inputs[i + 1]);
    }
    CHECK(find_task(name)->label(e.targets.back()) == "<eos>");
  }
  // Label tasks: every token except bos and eos has a target.
  for (const char* name : {"two_back", "local_count"}) {
    const Example e = drawn(name);
    CHECK(e.targets.front() == kIgnoreIndex);
    CHECK(e.targets.back() == kIgnoreIndex);
    for (size_t i = 1; i + 1 < e.inputs.size(); ++i) CHECK(e.targets[i] != kIgnoreIndex);
  }
  // Set tasks: the target is at the last item.
  const Example set = drawn("max_retrieval");
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    CHECK((set.targets[i] != kIgnoreIndex) == (i + 1 == set.inputs.size()));
  }
  // Answer tasks: exactly the placeholders have targets.
  for (const TaskInfo& info : all_tasks()) {
    if (info.causal) continue;
    const Example e = drawn(info.name.c_str());
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      CHECK((e.targets[i] != kIgnoreIndex) == (e.inputs[i] == info.padding));
    }
  }
}

}  // namespace
}  // namespace bamtrain

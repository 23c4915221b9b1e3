#include "prompts/needles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/join.h"
#include "prompts/filler.h"
#include "prompts/sentences.h"

namespace bamtrain {

namespace {

constexpr int64_t kNeedleTokens = 128;
constexpr int64_t kDepths = 40;  // possible depths of needles in a text

std::string needle_of(DrawnKind kind, const std::string& key, const std::string& value) {
  return fmt::format("One of the special magic {} for {} is: {}.", name_of(kind), key, value);
}

/// "a", "a, and b", "a, b, and c".
std::string query_of(const std::vector<std::string>& keys) {
  if (keys.size() == 1) return keys[0];
  return join({keys.begin(), keys.end() - 1}) + ", and " + keys.back();
}

struct Frame {
  std::string before, after;  // text before and after the context
};

Frame frame_of(const NeedleTask& task, const std::string& query) {
  const std::string kinds = name_of(task.value);
  const bool one = task.queries * task.values == 1;
  const std::string T = one ? kinds.substr(0, kinds.size() - 1) : kinds;
  const char *some = one ? "A" : "Some", *are = one ? "is" : "are", *all = one ? "is" : "are all";
  return {fmt::format("{} special magic {} {} hidden within the following text. Make sure to "
                      "memorize it. I will quiz you about the {} afterwards.\n",
                      some, T, are, T),
          fmt::format("\nWhat {} the special magic {} for {} mentioned in the provided text? The "
                      "special magic {} for {} mentioned in the provided text {}",
                      all, T, query, T, query, are)};
}

std::vector<std::string> units_of(const NeedleTask& task, const HaystackText* text, int64_t size,
                                  const std::vector<std::string>& keys, Draws* draws) {
  switch (task.haystack) {
    case HaystackKind::noise:
      return std::vector<std::string>(static_cast<size_t>(size), kFiller);
    case HaystackKind::needles: {
      std::vector<std::string> lines;
      for (int64_t i = 0; i < size; ++i) {
        const auto key = draw_different(1, keys, [&] { return draw_text(task.key, draws); });
        lines.push_back(needle_of(task.value, key[0], draw_text(task.value, draws)));
      }
      return lines;
    }
    case HaystackKind::text:
      return sentences_of(text->first(size));
  }
  broken_contract("a haystack");
}

/// The units before which `count` needles are inserted, ascending.
std::vector<int64_t> places_of(const NeedleTask& task, std::optional<double> depth, int64_t count,
                               int64_t units, Draws* draws) {
  if (depth) {
    // Add an epsilon, so that 0.29 of 100 is 29: the nearest double is below.
    return {static_cast<int64_t>(std::floor(static_cast<double>(units) * *depth + 1e-9))};
  }
  const bool of_text = task.haystack == HaystackKind::text;
  std::vector<int64_t> places = draws->choose(count, of_text ? kDepths : units);
  std::sort(places.begin(), places.end());
  if (of_text) {
    for (int64_t& place : places) place = units * place / (kDepths - 1);
  }
  return places;
}

TextPrompt make_needle_prompt(const NeedleTask& task, const NeedleOptions& options, int64_t size,
                              Draws* draws) {
  const auto keys = draw_different(task.keys, {}, [&] { return draw_text(task.key, draws); });
  const auto values =
      draw_different(task.keys * task.values, {}, [&] { return draw_text(task.value, draws); });
  const std::vector<int64_t> asked = draws->choose(task.queries, task.keys);
  TextPrompt p;
  p.tokens_to_generate = kNeedleTokens;
  std::vector<std::string> queries;
  for (const int64_t key : asked) {
    queries.push_back(keys[static_cast<size_t>(key)]);
    const auto first = values.begin() + key * task.values;
    p.outputs.insert(p.outputs.end(), first, first + task.values);
  }
  const std::vector<std::string> units = units_of(task, options.text, size, keys, draws);
  const int64_t count = std::ssize(values);
  const std::vector<int64_t> order = draws->choose(count, count);
  const std::vector<int64_t> places =
      places_of(task, options.depth, count, std::ssize(units), draws);
  std::vector<Needle> needles;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = order[static_cast<size_t>(i)], key = value / task.values;
    needles.push_back(
        {places[static_cast<size_t>(i)],
         needle_of(task.value, keys[static_cast<size_t>(key)], values[static_cast<size_t>(value)]),
         std::find(asked.begin(), asked.end(), key) != asked.end()});
  }
  const bool of_text = task.haystack == HaystackKind::text;
  Haystack haystack = hide(units, needles, of_text ? ' ' : '\n');
  const Frame frame = frame_of(task, query_of(queries));
  for (TextPrompt::Place& place : haystack.needles) place.at += frame.before.size();
  p.text = frame.before + haystack.text + frame.after;
  p.needles = std::move(haystack.needles);
  return p;
}

void check(const NeedleTask& task, const NeedleOptions& options) {
  require(task.keys >= 1 && task.values >= 1 && task.queries >= 1 && task.queries <= task.keys &&
              task.keys * task.values <= kDepths,
          "a task with keys to ask for");
  if (task.haystack == HaystackKind::text && options.text == nullptr) {
    throw Error(ExitCode::config, "{haystack}",
                fmt::format("a text to hide the needles of {} in", task.name), "an empty name",
                "name a file of essays, or a task with another haystack");
  }
  if (!options.depth) return;
  if (task.keys * task.values != 1) {
    throw Error(ExitCode::config, "{depth}", "a task of one needle",
                fmt::format("the {} needles of {}", task.keys * task.values, task.name),
                "leave it out, or name another task");
  }
  if (!(*options.depth >= 0 && *options.depth <= 1)) {
    throw Error(ExitCode::config, "{depth}", "a fraction of the haystack, from 0 to 1",
                fmt::format("{}", *options.depth), "");
  }
}

}  // namespace

const std::vector<NeedleTask>& needle_tasks() {
  using enum HaystackKind;
  using enum DrawnKind;
  static const std::vector<NeedleTask> tasks = {
      {"niah_single_1", noise, words, numbers, 1, 1, 1},
      {"niah_single_2", text, words, numbers, 1, 1, 1},
      {"niah_single_3", text, words, uuids, 1, 1, 1},
      {"niah_multikey_1", text, words, numbers, 4, 1, 1},
      {"niah_multikey_2", needles, words, numbers, 1, 1, 1},
      {"niah_multikey_3", needles, uuids, uuids, 1, 1, 1},
      {"niah_multivalue", text, words, numbers, 1, 4, 1},
      {"niah_multiquery", text, words, numbers, 4, 1, 4}};
  return tasks;
}

const NeedleTask* find_needle_task(const std::string& name) {
  for (const NeedleTask& t : needle_tasks()) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

PromptSet needle_prompts(const NeedleTask& task, const NeedleOptions& options, int64_t length,
                         uint64_t seed, const TokenCount& count) {
  check(task, options);
  // Needles are inserted before distinct lines.
  const int64_t least = task.haystack == HaystackKind::text ? 1 : task.keys * task.values;
  return PromptSet(task.name, {.least = least}, length, seed, count,
                   [task, options](int64_t size, Draws* draws) {
                     return make_needle_prompt(task, options, size, draws);
                   });
}

}  // namespace bamtrain

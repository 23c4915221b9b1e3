// RULER's needle tasks. A reader that does not use the generator parses each prompt's question and
// answer from its text.

#include "prompts/needles.h"

#include <set>

#include "data/files.h"
#include "data/tokenizer.h"
#include "data/tokenizers.h"
#include "prompts/support.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

/// Sentences "Here stands number N of all.", starting with 0, with various white space in between.
const HaystackText& essay() {
  static const HaystackText text = [] {
    std::string s;
    for (int i = 0; i < 1000; ++i) {
      s += "Here stands\nnumber " + std::to_string(i) + " of  all.\n\n";
    }
    return HaystackText(s);
  }();
  return text;
}

PromptSet prompts_of(const NeedleTask& task, int64_t length,
                     std::optional<double> depth = std::nullopt, uint64_t seed = 1) {
  return needle_prompts(task, {&essay(), depth}, length, seed, bytes);
}

/// What a prompt's text contains.
struct NeedleReading {
  std::string context;
  std::vector<std::string> units;  // the context's lines or sentences
  std::vector<std::string> queries;
  std::map<std::string, std::vector<std::string>> values;  // of each key
  bool one = false;                                        // asks for a single value
};

NeedleReading read_needles(const NeedleTask& task, const std::string& text) {
  NeedleReading r;
  const std::string kinds = name_of(task.value), kind = kinds.substr(0, kinds.size() - 1);
  r.one = text.starts_with("A special magic " + kind +
                           " is hidden within the following text. Make "
                           "sure to memorize it. I will quiz you about the " +
                           kind + " afterwards.\n");
  if (!r.one) {
    REQUIRE(text.starts_with("Some special magic " + kinds +
                             " are hidden within the following text. Make sure to memorize it. I "
                             "will quiz you about the " +
                             kinds + " afterwards.\n"));
  }
  const std::string T = r.one ? kind : kinds;
  const std::string asks = r.one ? "\nWhat is the special magic " + T + " for "
                                 : "\nWhat are all the special magic " + T + " for ";
  r.context = between(text, "afterwards.\n", asks);
  const std::string query = between(text, asks, " mentioned in the provided text? ");
  CHECK(text.ends_with(" mentioned in the provided text? The special magic " + T + " for " + query +
                       " mentioned in the provided text " + (r.one ? "is" : "are")));
  r.queries = split(query, ", ");
  if (r.queries.size() > 1) {
    REQUIRE(r.queries.back().starts_with("and "));
    r.queries.back().erase(0, 4);
  }
  const std::string begin = "One of the special magic " + kinds + " for ";
  if (task.haystack == HaystackKind::text) {
    // A needle may follow a sentence that was cut at the haystack's end.
    for (std::string part : split(r.context, ". ")) {
      const size_t at = part.find(" " + begin);
      if (at != std::string::npos) {
        r.units.push_back(part.substr(0, at));
        part.erase(0, at + 1);
      }
      r.units.push_back(part + ".");
    }
    r.units.back().pop_back();  // the last unit keeps its ending
  } else {
    r.units = split(r.context, "\n");
  }
  for (const std::string& unit : r.units) {
    if (!unit.starts_with(begin)) continue;
    const auto parts = split(unit.substr(begin.size()), " is: ");
    REQUIRE(parts.size() == 2);
    REQUIRE(parts[1].ends_with("."));
    r.values[parts[0]].push_back(parts[1].substr(0, parts[1].size() - 1));
  }
  return r;
}

/// The places of needles: how many of the haystack's own units come before each.
std::vector<int64_t> depths(const NeedleTask& task, const TextPrompt& p, const NeedleReading& r) {
  std::set<std::string> needles;
  for (const TextPrompt::Place& place : p.needles) needles.insert(at(p, place));
  CHECK(static_cast<int64_t>(needles.size()) == task.keys * task.values);
  std::vector<int64_t> before;
  int64_t own = 0;
  for (const std::string& unit : r.units) {
    if (needles.contains(unit)) {
      before.push_back(own);
    } else {
      ++own;
    }
  }
  CHECK(before.size() == needles.size());
  return before;
}

int64_t own_units(const TextPrompt& p, const NeedleReading& r) {
  return std::ssize(r.units) - std::ssize(p.needles);
}

TEST_CASE("needle prompts are RULER's, byte for byte") {
  const auto first = [](const char* name, int64_t length) {
    return prompts_of(*find_needle_task(name), length).prompt(0);
  };
  const TextPrompt noise = first("niah_single_1", 700);
  CHECK(
      noise.text ==
      "A special magic number is hidden within the following text. Make sure to memorize it. I "
      "will quiz you about the number afterwards.\n"
      "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n"
      "One of the special magic numbers for aware-cello is: 9150883.\n"
      "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n"
      "What is the special magic number for aware-cello mentioned in the provided text? The "
      "special magic number for aware-cello mentioned in the provided text is");
  CHECK(noise.outputs == std::vector<std::string>{"9150883"});
  const TextPrompt needles = first("niah_multikey_3", 800);
  CHECK(needles.text ==
        "A special magic uuid is hidden within the following text. Make sure to memorize it. I "
        "will quiz you about the uuid afterwards.\n"
        "One of the special magic uuids for c03e3419-9471-4df0-a40a-2e594da2e770 is: "
        "1ae3e28a-78fe-4e5e-8a4f-4e622eb6a1bc.\n"
        "One of the special magic uuids for 983668d4-7294-474f-97ed-2ff097e53164 is: "
        "250cbbf2-242d-4f53-b4d1-508e866efafb.\n"
        "One of the special magic uuids for 4964554f-65d7-4afc-996c-1bf54832efe5 is: "
        "46e8a104-1a8f-4b42-a110-b8ed5d6bce4a.\n"
        "What is the special magic uuid for c03e3419-9471-4df0-a40a-2e594da2e770 mentioned in the "
        "provided text? The special magic uuid for c03e3419-9471-4df0-a40a-2e594da2e770 mentioned "
        "in the provided text is");
  CHECK(needles.outputs == std::vector<std::string>{"1ae3e28a-78fe-4e5e-8a4f-4e622eb6a1bc"});
  const TextPrompt values = first("niah_multivalue", 900);
  CHECK(values.text ==
        "Some special magic numbers are hidden within the following text. Make sure to memorize "
        "it. I will quiz you about the numbers afterwards.\n"
        "Here stands number 0 of all. Here stands number 1 of all. Here stands number 2 of all. "
        "One of the special magic numbers for tawny-beetle is: 4113339. Here stands number 3 of "
        "all. One of the special magic numbers for tawny-beetle is: 5878599. One of the special "
        "magic numbers for tawny-beetle is: 9734095. Here stands number 4 of all. Here stands "
        "number 5 of all. One of the special magic numbers for tawny-beetle is: 5584634. Here "
        "stands number 6 of all. Here stands\n"
        "What are all the special magic numbers for tawny-beetle mentioned in the provided text? "
        "The special magic numbers for tawny-beetle mentioned in the provided text are");
  CHECK(sorted(values.outputs) ==
        std::vector<std::string>{"4113339", "5584634", "5878599", "9734095"});
  const TextPrompt queries = first("niah_multiquery", 1000);
  CHECK(queries.text ==
        "Some special magic numbers are hidden within the following text. Make sure to memorize "
        "it. I will quiz you about the numbers afterwards.\n"
        "Here stands number 0 of all. One of the special magic numbers for oblong-flower is: "
        "8022102. Here stands number 1 of all. One of the special magic numbers for aware-land is: "
        "3925581. Here stands number 2 of all. One of the special magic numbers for droll-mast is: "
        "9911861. Here stands number 3 of all. Here stands number 4 of all. Here stands number 5 "
        "of all. One of the special magic numbers for petite-cork is: 2477211. Here stands number "
        "6 of all. Here stands number 7 of all.\n"
        "What are all the special magic numbers for petite-cork, oblong-flower, aware-land, and "
        "droll-mast mentioned in the provided text? The special magic numbers for petite-cork, "
        "oblong-flower, aware-land, and droll-mast mentioned in the provided text are");
  CHECK(queries.outputs == std::vector<std::string>{"2477211", "8022102", "3925581", "9911861"});
}

TEST_CASE("RULER's eight needle tasks have its settings") {
  REQUIRE(needle_tasks().size() == 8);
  CHECK(find_needle_task("niah_single_4") == nullptr);
  const NeedleTask& last = *find_needle_task("niah_multiquery");
  CHECK(last.haystack == HaystackKind::text);
  CHECK((last.keys == 4 && last.values == 1 && last.queries == 4));
  const NeedleTask& third = *find_needle_task("niah_single_3");
  CHECK((third.key == DrawnKind::words && third.value == DrawnKind::uuids));
}

TEST_CASE("a thousand prompts of each needle task are answered by their text") {
  constexpr int64_t kLength = 2200;
  for (const NeedleTask& task : needle_tasks()) {
    INFO(task.name);
    const PromptSet prompts = prompts_of(task, kLength);
    std::vector<int64_t> asked(static_cast<size_t>(task.keys));
    for (int64_t i = 0; i < 1000; ++i) {
      const TextPrompt p = prompts.prompt(i);
      const NeedleReading r = read_needles(task, p.text);
      // The references are the values of the keys in the question, key by key.
      REQUIRE(std::ssize(r.queries) == task.queries);
      std::vector<std::string> outputs = p.outputs;
      for (const std::string& key : r.queries) {
        REQUIRE(r.values.contains(key));
        REQUIRE(std::ssize(outputs) >= task.values);
        CHECK(sorted(r.values.at(key)) == sorted({outputs.begin(), outputs.begin() + task.values}));
        outputs.erase(outputs.begin(), outputs.begin() + task.values);
      }
      CHECK(outputs.empty());
      CHECK(std::set<std::string>(r.queries.begin(), r.queries.end()).size() == r.queries.size());
      CHECK(r.one == (task.queries * task.values == 1));
      // Only the haystack is left.
      depths(task, p, r);
      int64_t number = 0;
      for (const std::string& unit : r.units) {
        if (unit.starts_with("One of the special")) continue;
        if (task.haystack == HaystackKind::noise) CHECK(unit == kFillerLine);
        if (task.haystack != HaystackKind::text) continue;
        const std::string whole = "Here stands number " + std::to_string(number++) + " of all.";
        CHECK(whole.starts_with(unit));
        CHECK((unit == whole || number == own_units(p, r)));
      }
      if (task.haystack == HaystackKind::needles) {
        CHECK(std::ssize(r.values) > 5);
      } else {
        CHECK(std::ssize(r.values) == task.keys);
      }
      for (const TextPrompt::Place& place : p.needles) {
        const bool is_asked = std::any_of(r.queries.begin(), r.queries.end(), [&](const auto& key) {
          return at(p, place).find(" for " + key + " is: ") != std::string::npos;
        });
        CHECK(place.asked == is_asked);
      }
      // The maximum length.
      const int64_t tokens = bytes(p.text) + 128;
      CHECK(p.tokens_to_generate == 128);
      CHECK(tokens <= kLength);
      CHECK(tokens > kLength - 260);
    }
  }
}

TEST_CASE("a needle stands at the depth that is asked for") {
  for (const char* name : {"niah_single_1", "niah_single_2", "niah_multikey_2"}) {
    const NeedleTask& task = *find_needle_task(name);
    for (int64_t i = 0; i <= 10; ++i) {
      INFO(name << " " << i);
      const double depth = static_cast<double>(i) / 10;
      const TextPrompt p = prompts_of(task, 4000, depth).prompt(i);
      const NeedleReading r = read_needles(task, p.text);
      const int64_t n = own_units(p, r);
      CHECK(n > 15);
      CHECK(depths(task, p, r) == std::vector<int64_t>{n * i / 10});
    }
  }
}

TEST_CASE("a depth is for one needle, and from 0 to 1; a text is asked for") {
  const auto refused = [](const char* name, std::optional<double> depth, const HaystackText* text) {
    return error_of(ExitCode::config, [&] {
      needle_prompts(*find_needle_task(name), {text, depth}, 2000, 1, bytes);
    });
  };
  CHECK(contains(refused("niah_multivalue", 0.5, &essay()), "{depth}: expected a task of one"));
  CHECK(contains(refused("niah_single_1", 1.5, nullptr),
                 "{depth}: expected a fraction of the haystack"));
  CHECK(contains(refused("niah_single_1", std::nan(""), nullptr), "{depth}"));
  CHECK(contains(refused("niah_single_2", std::nullopt, nullptr), "{haystack}: expected a text"));
  CHECK(contains(
      error_of(ExitCode::config, [&] { prompts_of(*find_needle_task("niah_single_1"), 300); }),
      "{length}: expected at least "));
}

TEST_CASE("random depths are RULER's") {
  SECTION("before any line, each as likely") {
    const NeedleTask& task = *find_needle_task("niah_single_1");
    const PromptSet prompts = prompts_of(task, 1200);
    std::vector<int64_t> counts(static_cast<size_t>(prompts.size()));
    for (int64_t i = 0; i < 2000; ++i) {
      const TextPrompt p = prompts.prompt(i);
      const NeedleReading r = read_needles(task, p.text);
      if (own_units(p, r) != prompts.size()) continue;  // its key is longer
      ++counts.at(static_cast<size_t>(depths(task, p, r)[0]));
    }
    CHECK(is_uniform(counts));
  }
  SECTION("before sentences at 40 equal distances, four different ones") {
    const NeedleTask& task = *find_needle_task("niah_multivalue");
    const PromptSet prompts = prompts_of(task, 4000);
    std::vector<int64_t> counts(40);
    for (int64_t i = 0; i < 1000; ++i) {
      const TextPrompt p = prompts.prompt(i);
      const NeedleReading r = read_needles(task, p.text);
      const int64_t n = own_units(p, r);
      REQUIRE(n >= 80);
      std::set<int64_t> places;
      for (const int64_t place : depths(task, p, r)) {
        int64_t k = 0;
        while (n * k / 39 != place) REQUIRE(++k < 40);
        ++counts[static_cast<size_t>(k)];
        places.insert(k);
      }
      CHECK(places.size() == 4);
    }
    CHECK(is_uniform(counts));
  }
}

TEST_CASE("every key is asked for as often") {
  const NeedleTask& task = *find_needle_task("niah_multikey_1");
  const PromptSet prompts = prompts_of(task, 2200);
  std::vector<int64_t> counts(4);  // by the place of the needle among the four
  for (int64_t i = 0; i < 2000; ++i) {
    const TextPrompt p = prompts.prompt(i);
    for (size_t n = 0; n < 4; ++n) counts[n] += p.needles[n].asked;
  }
  CHECK(counts[0] + counts[1] + counts[2] + counts[3] == 2000);
  CHECK(is_uniform(counts));
}

TEST_CASE("needle prompts fill their length in a model's own tokens") {
  for (const char* file : {"mistral-7b-v0.3.model", ""}) {
    const std::string path =
        *file ? shared_data("tokenizer/" + std::string(file)) : golden_path("digits.json");
    if (path.empty()) continue;
    const Tokenizer tokenizer = Tokenizer::open(path);
    const TokenCount count = [&](const std::string& text) {
      return std::ssize(tokenizer.encode(text)) + 1;
    };
    for (const char* name : {"niah_single_1", "niah_single_3", "niah_multikey_3"}) {
      for (const int64_t length : {1024, 4096}) {
        INFO(file << " " << name << " " << length);
        const PromptSet prompts =
            needle_prompts(*find_needle_task(name), {&essay()}, length, 1, count);
        for (int64_t i = 0; i < 5; ++i) {
          const int64_t tokens = count(prompts.prompt(i).text) + 128;
          CHECK(tokens <= length);
          CHECK(tokens > length - 160);
        }
      }
    }
  }
}

TEST_CASE("a needle prompt is a function of seed, task, length and index, in any order") {
  const NeedleTask& task = *find_needle_task("niah_multikey_2");
  const PromptSet prompts = prompts_of(task, 3000);
  const std::string fifth = prompts.prompt(5).text;
  prompts.prompt(6);
  CHECK(prompts.prompt(5).text == fifth);
  CHECK(prompts_of(task, 3000).prompt(5).text == fifth);
  CHECK(prompts_of(task, 3000, std::nullopt, 2).prompt(5).text != fifth);
  CHECK(prompts_of(task, 3001).prompt(5).text != fifth);
  // The same key and value at every depth.
  CHECK(prompts_of(task, 3000, 0.1).prompt(5).outputs ==
        prompts_of(task, 3000, 0.9).prompt(5).outputs);
}

}  // namespace
}  // namespace bamtrain

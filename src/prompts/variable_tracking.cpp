#include "prompts/variable_tracking.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/join.h"
#include "prompts/drawn_text.h"
#include "prompts/filler.h"
#include "prompts/haystack.h"

namespace bamtrain {

namespace {

constexpr int64_t kNames = 5, kNameLetters = 5, kDigits = 5, kVariableTrackingTokens = 30;
constexpr int64_t kExampleLetters = 3, kExampleTokens = 500;
constexpr const char* kVariableTrackingBefore =
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n";

struct Chain {
  std::vector<std::string> names;
  std::string value;
};

Chain draw_chain(int64_t letters, const std::string& other_value, Draws* draws) {
  Chain chain;
  chain.names = draw_different(kNames, {}, [&] { return draw_letters(letters, 'A', draws); });
  chain.value = draw_different(1, {other_value}, [&] { return draw_number(kDigits, draws); })[0];
  return chain;
}

/// The chain hidden in `lines` lines of noise, with its question.
TextPrompt question(const Chain& chain, int64_t lines, Draws* draws) {
  std::vector<int64_t> places = draws->choose(kNames, lines);
  std::sort(places.begin(), places.end());
  std::vector<Needle> needles;
  for (size_t i = 0; i < chain.names.size(); ++i) {
    const std::string value = i == 0 ? chain.value : "VAR " + chain.names[i - 1] + " ";
    needles.push_back({places[i], fmt::format("VAR {} = {}", chain.names[i], value)});
  }
  const std::vector<std::string> noise(static_cast<size_t>(lines), kFiller);
  Haystack haystack = hide(noise, needles, '\n');
  TextPrompt p;
  p.text = kVariableTrackingBefore + haystack.text +
           fmt::format(
               "\nQuestion: Find all variables that are assigned the value {} in the text above. "
               "Answer: According to the chain(s) of variable assignment in the text above, {} "
               "variables are assigned the value {}, they are: ",
               chain.value, kNames, chain.value);
  p.outputs = chain.names;
  p.tokens_to_generate = kVariableTrackingTokens;
  p.needles = std::move(haystack.needles);
  for (TextPrompt::Place& place : p.needles)
    place.at += std::string(kVariableTrackingBefore).size();
  return p;
}

/// The question with its answer, and a newline.
TextPrompt example(const Chain& chain, int64_t lines, Draws* draws) {
  TextPrompt p = question(chain, lines, draws);
  p.text += join(p.outputs, " ") + "\n";
  return p;
}

}  // namespace

PromptSet variable_tracking_prompts(int64_t length, uint64_t seed, const TokenCount& count) {
  const HaystackSizes sizes = {.least = kNames};
  const auto solved = [](int64_t lines, Draws* draws) {
    return example(draw_chain(kExampleLetters, "", draws), lines, draws);
  };
  const int64_t lines =
      PromptSet("variable_tracking.example", sizes, kExampleTokens, seed, count, solved).size();
  const auto make = [lines](int64_t size, Draws* draws) {
    const Chain of_example = draw_chain(kExampleLetters, "", draws);
    const std::string before = example(of_example, lines, draws).text;
    TextPrompt p = question(draw_chain(kNameLetters, of_example.value, draws), size, draws);
    p.text = before + p.text;
    for (TextPrompt::Place& place : p.needles) place.at += before.size();
    return p;
  };
  return PromptSet("variable_tracking", sizes, length, seed, count, make);
}

}  // namespace bamtrain

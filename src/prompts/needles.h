#pragma once
// RULER's needle tasks: sentences that give keys values, hidden in a text; its end asks for the
// values of some keys. Prompts are RULER's base template, byte for byte:
//
//   Some special magic {T} are hidden within the following text. Make sure to memorize it. I will
//   quiz you about the {T} afterwards.\n{context}\nWhat are all the special magic {T} for {query}
//   mentioned in the provided text? The special magic {T} for {query} mentioned in the provided
//   text are
//
// with "A", "is" and {T} in the singular where one value answers. What is drawn differs: see
// words.h and sentences.h. Ours besides: no two keys of a prompt are alike, nor two values of its
// needles, so that what a question asks for is never in doubt.

#include <optional>
#include <string>
#include <vector>

#include "prompts/drawn_text.h"
#include "prompts/haystack.h"
#include "prompts/prompt_set.h"

namespace bamtrain {

enum class HaystackKind {
  noise,    // kFiller, one a line
  needles,  // needles of other keys, one a line
  text,     // sentences of a user's file (RULER: essays)
};

struct NeedleTask {
  std::string name;  // RULER's
  HaystackKind haystack = HaystackKind::noise;
  DrawnKind key = DrawnKind::words, value = DrawnKind::numbers;
  int64_t keys = 1, values = 1, queries = 1;  // values: of each key
};

/// RULER's eight.
const std::vector<NeedleTask>& needle_tasks();
/// Null: none of them has that name.
const NeedleTask* find_needle_task(const std::string& name);

struct NeedleOptions {
  /// Of HaystackKind::text, which outlives the prompts.
  const HaystackText* text = nullptr;
  /// Where the needle stands: before unit floor(n x depth) of n, 1 being behind all. Without it, as
  /// RULER has it: in lines, before different ones drawn at random; in a text, before sentences
  /// floor(n x d) of different d drawn from 40 that are equally spaced from 0 to 1.
  std::optional<double> depth = std::nullopt;
};

/// The prompts of at most `length` tokens with the 128 of an answer. A line or a word is a unit of
/// the haystack's size. Errors as PromptSet; (ExitCode::config) at "{depth}" for a depth outside
/// [0, 1], or with several needles; at "{haystack}" for HaystackKind::text without a text.
PromptSet needle_prompts(const NeedleTask& task, const NeedleOptions& options, int64_t length,
                         uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

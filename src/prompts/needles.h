#pragma once
// RULER's needle tasks: sentences that assign values to keys are hidden in a text; its end asks for
// the values of some keys. Prompts are RULER's base template, byte for byte:
//
//   Some special magic {T} are hidden within the following text. Make sure to memorize it. I will
//   quiz you about the {T} afterwards.\n{context}\nWhat are all the special magic {T} for {query}
//   mentioned in the provided text? The special magic {T} for {query} mentioned in the provided
//   text are
//
// with "A", "is" and singular {T} if a single value answers. The random draws differ: see words.h
// and sentences.h. Unlike RULER, all keys of a prompt are distinct, and so are its needles' values,
// so that the answer is never ambiguous.

#include <optional>
#include <string>
#include <vector>

#include "prompts/drawn_text.h"
#include "prompts/haystack.h"
#include "prompts/prompt_set.h"

namespace bamtrain {

enum class HaystackKind {
  noise,    // kFiller, one per line
  needles,  // needles of other keys, one per line
  text,     // sentences of a user's file (RULER: essays)
};

struct NeedleTask {
  std::string name;  // RULER's name
  HaystackKind haystack = HaystackKind::noise;
  DrawnKind key = DrawnKind::words, value = DrawnKind::numbers;
  int64_t keys = 1, values = 1, queries = 1;  // values per key
};

/// RULER's eight needle tasks.
const std::vector<NeedleTask>& needle_tasks();
/// Null if there is no such task.
const NeedleTask* find_needle_task(const std::string& name);

struct NeedleOptions {
  /// For HaystackKind::text; must outlive the prompts.
  const HaystackText* text = nullptr;
  /// The needle's position: before unit floor(n x depth) of n; 1 is the end. If not set, as in
  /// RULER: haystacks of lines put needles before distinct random lines; texts put them before
  /// sentences floor(n x d) for distinct d drawn from 40 values equally spaced from 0 to 1.
  std::optional<double> depth = std::nullopt;
};

/// Prompts of at most `length` tokens, including 128 for the answer. The haystack's size counts
/// lines or words. Errors as PromptSet; Error (ExitCode::config) at "{depth}" for a depth outside
/// [0, 1] or with several needles; at "{haystack}" for HaystackKind::text without a text.
PromptSet needle_prompts(const NeedleTask& task, const NeedleOptions& options, int64_t length,
                         uint64_t seed, const TokenCount& count);

}  // namespace bamtrain

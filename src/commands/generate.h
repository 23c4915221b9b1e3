#pragma once
// bamtrain generate: generates text from a prompt with a checkpoint.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/reader.h"
#include "eval/generate.h"

namespace bamtrain {

struct GenerateArguments {
  std::string checkpoint, tokenizer;
  std::optional<std::string> prompt;   // not set: use `prompt_file`
  std::string prompt_file = "-";       // "-": standard input
  std::vector<std::string> overrides;  // of the prior and the scale
  std::optional<Precision> precision;  // not set: as the checkpoint's run
  DeviceKind device = DeviceKind::automatic;
  std::optional<bool> echo;  // print the prompt first; not set: on a terminal
  int64_t samples = 1;       // continuations, each with a seed of its own
  uint64_t seed = 0;
  GenerationLimits limits = {256, {0.8, 50, 1, 0}, {}};  // temperature 0.8, top-k 50
};

/// Prints the text while it is generated; of several samples, each below a line with its seed.
/// Returns the exit code.
int run_generate(const GenerateArguments& arguments);

}  // namespace bamtrain

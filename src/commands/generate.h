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
  uint64_t seed = 0;
  GenerationLimits limits;
};

/// Prints the text while it is generated. Returns the exit code.
int run_generate(const GenerateArguments& arguments);

}  // namespace bamtrain

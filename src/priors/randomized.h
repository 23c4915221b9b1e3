#pragma once
// Randomized positions as an option of priors (Ruoss et al. 2023, "Randomized positional encodings
// boost length generalization of transformers"): in training, and in evaluation where the options
// say so, a sorted random subset of a longer range takes the place of 0, 1, 2, ... The values are
// drawn by model/random_positions.h.

#include <cstdint>
#include <vector>

#include "core/options.h"

namespace bamtrain {

/// What a prior reads: positions of tokens, or distances between them, of which 0 stays 0.
enum class Randomized { positions, distances };

struct Randomization {
  int64_t range = 0;  // L: they are below it; 0: nothing is random
  Randomized what = Randomized::positions;
  /// One subset for all sequences of a step, another in every layer that has one of its own; else
  /// anew for every sequence, the same in all layers.
  bool of_step = false;
  bool in_evaluation = false;  // too

  explicit operator bool() const { return range > 0; }
  bool operator==(const Randomization&) const = default;
};

/// The options of a prior that can be randomized, behind those of its own.
void add_randomized_options(std::vector<OptionSpec>* options, Randomized what);
/// What they say, T tokens being a sequence of training.
Randomization randomization_of(const Options& options, int64_t T, Randomized what);
/// Error (ExitCode::config) where one of them means nothing or allows no draw.
void check_randomized(const Options& options, int64_t T);

}  // namespace bamtrain

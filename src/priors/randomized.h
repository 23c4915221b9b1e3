#pragma once
// Randomized positions as an option of priors (Ruoss et al. 2023, "Randomized positional encodings
// boost length generalization of transformers"). In training, a sorted random subset of a longer
// range replaces 0, 1, 2, ...; in evaluation too if the options say so. model/random_positions.h
// draws the values.

#include <cstdint>
#include <vector>

#include "core/options.h"

namespace bamtrain {

/// What is random: positions of tokens, or distances between them. Distance 0 stays 0.
enum class Randomized { positions, distances };

struct Randomization {
  int64_t range = 0;  // L, the exclusive upper bound of the values; 0: nothing is random
  Randomized what = Randomized::positions;
  /// If true, one subset per step for all sequences, with another for every layer that has its own
  /// prior. Else one subset per sequence, the same in all layers.
  bool of_step = false;
  bool in_evaluation = false;  // as well as in training

  explicit operator bool() const { return range > 0; }
  bool operator==(const Randomization&) const = default;
};

/// Appends the options of a prior that can be randomized, after the prior's own.
void add_randomized_options(std::vector<OptionSpec>* options, Randomized what);
/// The Randomization that the options describe. T: length of a training sequence.
Randomization randomization_of(const Options& options, int64_t T, Randomized what);
/// Throws Error (ExitCode::config) if an option has no effect or allows no draw.
void check_randomized(const Options& options, int64_t T);

}  // namespace bamtrain

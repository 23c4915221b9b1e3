#pragma once
// Options of mechanisms whose value 0 stands for a number that follows from the training length
// (OptionSpec::of_length). Attention is in the form of configurations: {"prior", "scale",
// "window"}. The prior is an object or a list of objects for the layers in turn; a mix has its
// prior under "base".

#include <cstdint>
#include <nlohmann/json.hpp>

namespace bamtrain {

/// The largest plausible training length.
inline constexpr int64_t kMaxTrainedLength = INT32_MAX;

/// Replaces such options in `attention` by their numbers in a model trained at length T. Throws
/// Error (ExitCode::checkpoint), at "prior.window" or "prior[1].window", for a number that its
/// option cannot have. REQUIRES: 0 < T <= kMaxTrainedLength.
nlohmann::json with_lengths(nlohmann::json attention, int64_t T);

/// What with_lengths_of takes from a model, and the training length of that model (0: unknown).
struct TakenLengths {
  bool prior = true, scale = true;
  int64_t T = 0;
};

/// Replaces such options of 0 in `attention` by the number in `source`, from the same mechanism in
/// the same layer. In lists, entry n is compared as layer n. Rope and rope_local have the same
/// options. If `source` has no number, an option with OptionSpec::of_source_length gets the number
/// for length taken.T; others stay 0. An option also stays 0 if it stands for the same number at
/// every length, since `attention` has a window. Throws Error as with_lengths.
nlohmann::json with_lengths_of(nlohmann::json attention, const nlohmann::json& source,
                               const TakenLengths& taken = {});

}  // namespace bamtrain

#pragma once
// Options of mechanisms whose 0 stands for a number that the training length gives
// (OptionSpec::of_length), in the form that configurations write attention in: {"prior", "scale",
// "window"}, the prior an object or a list of such for the layers in turn, one of a mix under
// "base".

#include <cstdint>
#include <nlohmann/json.hpp>

namespace bamtrain {

/// The longest training length that anything is believed to have.
inline constexpr int64_t kMaxTrainedLength = INT32_MAX;

/// `attention` with the numbers that such options stand for in a model trained at length T. Error
/// (ExitCode::checkpoint), at "prior.window" or "prior[1].window", for a number that its option
/// cannot have. REQUIRES: 0 < T <= kMaxTrainedLength.
nlohmann::json with_lengths(nlohmann::json attention, int64_t T);

/// What with_lengths_of takes over, and from a model trained at which length (0: not known).
struct TakenLengths {
  bool prior = true, scale = true;
  int64_t T = 0;
};

/// `attention` with, where such an option is 0, the number that `source` has in the same mechanism
/// of the same layer, of lists as of layer n for the entry n. Rope and rope_local have the same
/// options. Of OptionSpec::of_source_length, where `source` has none: the number of length taken.T.
/// Left at 0: what else `source` has at 0 or not at all, and what stands for the same number at
/// every length, since `attention` has a window. Error as with_lengths.
nlohmann::json with_lengths_of(nlohmann::json attention, const nlohmann::json& source,
                               const TakenLengths& taken = {});

}  // namespace bamtrain

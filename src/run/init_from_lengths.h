#pragma once
// The numbers that a training length gives to mechanisms (model/length_options.h) in the run or
// model that another begins from: they are part of what its weights compute, at any length.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "train/run_config.h"

namespace bamtrain {

struct SourceAttention {
  nlohmann::json attention;  // as with_lengths gives it; null: nothing tells
  int64_t T = 0;             // that the model was trained at; 0: nothing tells
};

/// Of the model in init_from.folder, as far as its config.json or state.json tells. Errors as
/// source_model_type and verified_state; a number that no run has (ExitCode::checkpoint).
SourceAttention source_attention(const InitFromConfig& from);

/// model.attention of the checkpoint that the run is to resume from, as it is stored, where that
/// run began by init_from; null: there is none such. `resumes`: whether there is any. What cannot
/// be read is passed over, as resuming does.
nlohmann::json resumed_attention(const RunConfig& config, bool* resumes);

}  // namespace bamtrain

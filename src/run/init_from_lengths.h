#pragma once
// The numbers that mechanisms derive from the training length (model/length_options.h) of the run
// or model that another run starts from. They are part of what its weights compute, at any length.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "train/run_config.h"

namespace bamtrain {

struct SourceAttention {
  nlohmann::json attention;  // as from with_lengths; null: unknown
  int64_t T = 0;             // training length of the model; 0: unknown
};

/// For the model in init_from.folder, as far as its config.json or state.json says. Throws Error as
/// source_model_type and verified_state; (ExitCode::checkpoint) for a number that no run can have.
SourceAttention source_attention(const InitFromConfig& from);

/// state.json of the checkpoint that the run will resume from, or of another one of the same run;
/// null if there is none. Skips unreadable checkpoints, as resuming does.
nlohmann::json resumed_state(const RunConfig& config);

/// model.attention in that state, if the run began with init_from; null otherwise.
nlohmann::json resumed_attention(const nlohmann::json& state);

}  // namespace bamtrain

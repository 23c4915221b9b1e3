#pragma once
// Which models a run may begin with: those whose weights have the same meaning here as in their own
// program.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The model types that init_from.folder may have. "bamtrain": a checkpoint, or what export writes.
inline constexpr std::array kSourceModelTypes = {"llama", "mistral", "qwen2", "gpt2", "bamtrain"};

/// The model type of the folder: model_type in its config.json, "bamtrain" for a checkpoint, else
/// init_from.model_type. Throws Error (ExitCode::checkpoint) for another type, with what is not
/// supported of it, or if there is no type; (ExitCode::config) if init_from.model_type differs from
/// the folder's.
std::string source_model_type(const InitFromConfig& from);

/// Checks the members of `source`, the content of config.json at `path`, that change the
/// computation without any tensor showing it. `type`: not "bamtrain". Throws Error
/// (ExitCode::checkpoint) naming the member. Members that the type does not have go to `warn` in
/// one message. Tied weights are compared elsewhere if model.tied is false: their tensors show
/// whether a run may begin with them.
void check_source_members(const std::string& type, const ModelConfig& model,
                          const std::string& path, const nlohmann::json& source, const Warn& warn);

/// Why a model of this type has no tensor of this name; "" if it has one. transformers reads no
/// other tensors. `source`: the folder's config.json, null if missing.
std::string why_no_tensor(const std::string& type, const nlohmann::json& source,
                          const std::string& name);

/// The possible names of a tensor that every folder of the type has; empty for "bamtrain".
std::vector<std::string> embedding_names(const std::string& type);

/// The values that transformers uses for members missing in the type's config.json. An object.
nlohmann::json source_defaults(const std::string& type);

/// Whether this layer of the folder's model sees no keys past its sliding_window. `type`: "" if
/// config.json has none.
bool has_sliding_window(const std::string& type, const nlohmann::json& source, int64_t layer);

/// state.json of a checkpoint folder, as verified_state; null if missing.
nlohmann::json source_state(const std::string& folder);

/// config.json of the folder; null if missing. Throws Error (ExitCode::checkpoint) if it is not a
/// JSON object.
nlohmann::json source_config(const std::string& folder);

}  // namespace bamtrain

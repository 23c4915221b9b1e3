#pragma once
// Which models a run may begin with: those whose weights mean here what they mean where they are
// from.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/run_config.h"

namespace bamtrain {

/// The model types that init_from.folder may have. "bamtrain": a checkpoint, or what export writes.
inline constexpr std::array kSourceModelTypes = {"llama", "mistral", "qwen2", "gpt2", "bamtrain"};

/// That of the folder: its config.json's model_type, "bamtrain" where it is a checkpoint, else
/// init_from.model_type. Error (ExitCode::checkpoint): another type, with what of it is not
/// supported, or none that anything names; (ExitCode::config): init_from.model_type is another than
/// the folder's.
std::string source_model_type(const InitFromConfig& from);

/// What `source`, the content of config.json at `path` with a type of others, says of its model and
/// no key or tensor of a run can say. Error (ExitCode::checkpoint) naming the member. Members that
/// the type does not have are told by `warn`, once for all. Whether a run without model.tied may
/// begin with tied weights, their tensors show.
void check_source_members(const std::string& type, const ModelConfig& model,
                          const std::string& path, const nlohmann::json& source, const Warn& warn);

/// Why a model of the type has no tensor that its folder names so; "": it has one. `source`: its
/// config.json, null where there is none. transformers reads no other tensor.
std::string why_no_tensor(const std::string& type, const nlohmann::json& source,
                          const std::string& name);

/// A tensor that every folder of the type has, by each of its names; none of "bamtrain".
std::vector<std::string> embedding_names(const std::string& type);

/// What the type's config.json stands for where it lacks a member, as transformers has it. An
/// object.
nlohmann::json source_defaults(const std::string& type);

/// Whether a layer of the folder's model sees no keys past its sliding_window. `type`: "" where
/// config.json has none.
bool has_sliding_window(const std::string& type, const nlohmann::json& source, int64_t layer);

/// state.json in the folder, of a checkpoint, as verified_state; null where there is none.
nlohmann::json source_state(const std::string& folder);

/// config.json in the folder; null where there is none. Error (ExitCode::checkpoint) for what is no
/// JSON object.
nlohmann::json source_config(const std::string& folder);

}  // namespace bamtrain

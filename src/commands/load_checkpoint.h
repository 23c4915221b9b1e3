#pragma once
// Loads a checkpoint's config and weights for evaluation.

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "core/arena.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// The config in a checkpoint's `state`; errors name `file`, its state.json. Throws Error
/// (checkpoint) with `remedy` if the config is missing or invalid.
RunConfig stored_config(const nlohmann::json& state, const std::string& file,
                        const std::string& remedy);

/// The checkpoint's config with `overrides` applied: another prior with the same parameters, or
/// another scale or normalizer if neither has any. So all trained parameters are used, and all used
/// ones are trained. Reports each changed key on standard error, and each data path that has moved
/// (find_run_data). Throws Error (checkpoint) as stored_config, or if the tensors do not match the
/// config's model; (usage, config) for other overrides.
RunConfig trained_config(const Checkpoint& checkpoint, const std::vector<std::string>& overrides);

/// Adds RUN, also as --checkpoint, which is required.
CLI::Option* add_checkpoint(CLI::App& command, std::string& folder);

/// Opens the checkpoint in the folder that the user gave for it, or the one of a run's folder
/// (record/named_checkpoint.h), and then says on standard error which.
Checkpoint load_checkpoint(const std::string& folder);

/// Adds --tokenizer; empty: open_tokenizer searches for it (record/run_text.h).
CLI::Option* add_tokenizer(CLI::App& command, std::string& file);

/// Adds --set: the overrides that trained_config accepts.
CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// Throws Error (ExitCode::device) at `where`, "memory of a model and a text (--max-tokens)",
/// unless `memory` can hold the weights of `layout` plus `beside` bytes. Reports a large amount on
/// standard error.
void check_memory(const MemorySource& memory, const ParameterLayout& layout, int64_t beside,
                  const std::string& where, const std::string& remedy);

/// Loads the master weights of `layout` from the checkpoint into the backend's memory; they live as
/// long as `arena`. Throws Error (checkpoint) for values that the prior in use does not allow, see
/// check_values.
Tensor load_master_weights(const Checkpoint& checkpoint, const ParameterLayout& layout,
                           Backend& backend, Arena& arena);

}  // namespace bamtrain

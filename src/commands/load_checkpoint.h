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

/// The config that `state` of a checkpoint holds, for errors at `file`, its state.json. Error
/// (checkpoint) with `remedy`: it has none, or one that is none of a run's.
RunConfig stored_config(const nlohmann::json& state, const std::string& file,
                        const std::string& remedy);

/// The checkpoint's config with what `overrides` replace: a prior by one that has its parameters, a
/// scale by another where neither has any. So what was trained stays in use, and what is in use was
/// trained. Each key that differs is told on standard error, and so is each path of data that
/// stands for another place now (find_run_data). Error (checkpoint): as stored_config,
/// or tensors that are not those of the config's model; (usage, config): other overrides.
RunConfig trained_config(const Checkpoint& checkpoint, const std::vector<std::string>& overrides);

/// --set of a command: the overrides that trained_config takes.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// Error (ExitCode::device) at `where`, "memory of a model and a text (--max-tokens)", unless
/// `memory` has as many bytes as the weights of `layout` and `beside` them. Much of it is told on
/// standard error.
void check_memory(const MemorySource& memory, const ParameterLayout& layout, int64_t beside,
                  const std::string& where, const std::string& remedy);

/// The master weights of `layout` from the checkpoint, in memory of the backend that lives as long
/// as `arena`. Error (checkpoint): values that the prior in use does not allow, see check_values.
Tensor load_master_weights(const Checkpoint& checkpoint, const ParameterLayout& layout,
                           Backend& backend, Arena& arena);

}  // namespace bamtrain

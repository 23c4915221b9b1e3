#pragma once
// What a checkpoint of a run holds beyond the format of checkpoint/: names of tensors, the state,
// and whether a checkpoint fits a run.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/loader.h"
#include "model/parameters.h"
#include "train/optimizer.h"

namespace bamtrain {

/// The parameters in the flat buffer `masters`, under their own names.
std::vector<NamedTensor> model_tensors(const ParameterLayout& layout, const Tensor& masters);

/// The moments of trained parameters: NAME.exp_avg and NAME.exp_avg_sq.
std::vector<NamedTensor> optimizer_tensors(const ParameterLayout& layout, const Tensor& first,
                                           const Tensor& second);

/// What identifies a data set in state.json: {"fingerprint", "tokenizer_sha256" or null}.
nlohmann::json describe_data(const ShardSet& shards);

/// Error (ExitCode::data) where the checkpoint was trained on other data or another tokenizer.
/// `allow_other` lifts the first, never the second.
void require_same_data(const nlohmann::json& before, const ShardSet& now, bool allow_other,
                       const std::string& where);

}  // namespace bamtrain

#pragma once
// What a checkpoint of a run holds beyond the format of checkpoint/: names of tensors, the state,
// and whether a checkpoint fits a run.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/sequences.h"
#include "model/parameters.h"
#include "train/optimizer.h"

namespace bamtrain {

/// A tensor's shape in messages: "(4, 16)".
std::string shape_text(const std::vector<int64_t>& shape);

/// The parameters in the flat buffer `master_weights`, under their own names.
std::vector<NamedTensor> model_tensors(const ParameterLayout& layout, const Tensor& master_weights);

/// The moments of trained parameters: NAME.exp_avg and NAME.exp_avg_sq.
std::vector<NamedTensor> optimizer_tensors(const ParameterLayout& layout, const Tensor& first,
                                           const Tensor& second);

/// Error (ExitCode::checkpoint) naming the tensor of `file` unless all `values` of `p` are finite
/// and within the limits that the optimizer keeps.
void check_values(const Parameter& p, const float* values, const std::string& file,
                  const std::string& remedy);

/// What identifies a data set in state.json: {"fingerprint", "sample", "tokenizer_sha256" or null}.
nlohmann::json describe_data(const ShardSet& shards);
/// Of a mixture the fingerprint covers the sources' and their shares, the sample theirs, and
/// "sources" lists each with its "path" and "weight". One source is described as its shards are.
nlohmann::json describe_data(const std::vector<Source>& sources);
/// With tasks the fingerprint covers them, their options and lengths, and their weights; "tasks"
/// lists them.
nlohmann::json describe_data(const Sequences& sequences);

/// Of the tokenizer whose shards the checkpoint was trained on; empty: not known. Error
/// (ExitCode::checkpoint) where its state does not identify a data set.
std::string tokenizer_sha256(const Checkpoint& checkpoint);

/// In state.json: the checkpoint outside out_dir that the run once started from; absent otherwise.
inline constexpr const char* kStartedFrom = "started_from";

/// Error (ExitCode::checkpoint) naming file and member unless state.json holds what a run writes:
/// "config" (an object), "data" (describe_data and the number of "windows" read), "tokens", and
/// kStartedFrom and "best" (run/saves.h) where they are; step at most kMaxSteps. Other members are
/// none of a run's business.
void check_run_state(const Checkpoint& checkpoint);

/// Error (ExitCode::data) naming `source` where the checkpoint was trained on other data or another
/// tokenizer than what describe_data says `now`. `allow_other` lifts the first, never the second.
/// A checkpoint of before there were samples has none to compare.
/// Error (ExitCode::checkpoint) where `before`, its "data", does not identify a data set. `where`:
/// the checkpoint's folder.
void require_same_data(const nlohmann::json& before, const nlohmann::json& now,
                       const std::string& source, bool allow_other, const std::string& where);

/// What require_same_data has compared and what it has not, for people; "" where `now` is allowed
/// to be other data, and is.
std::string compared_data(const nlohmann::json& before, const nlohmann::json& now);

}  // namespace bamtrain

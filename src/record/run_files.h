#pragma once
// What a checkpoint of a run holds in addition to the format of checkpoint/: tensor names, the
// state, and whether a checkpoint fits a run.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/sequences.h"
#include "model/parameters.h"
#include "train/optimizer.h"

namespace bamtrain {

/// In a run's folder: the resolved configuration that the run began or was resumed with.
inline constexpr const char* kConfigFile = "config.json";

/// A tensor's shape in messages, such as "(4, 16)".
std::string shape_text(const std::vector<int64_t>& shape);

/// The parameters in the flat buffer `master_weights`, under their own names.
std::vector<NamedTensor> model_tensors(const ParameterLayout& layout, const Tensor& master_weights);

inline constexpr const char *kFirstMoment = ".exp_avg", *kSecondMoment = ".exp_avg_sq";
/// The optimizer state of trained parameters: NAME.exp_avg and NAME.exp_avg_sq.
std::vector<NamedTensor> optimizer_tensors(const ParameterLayout& layout, const Tensor& first,
                                           const Tensor& second);

/// Throws Error (ExitCode::checkpoint) naming the tensor of `file` unless all `values` of `p` are
/// finite and within the limits that the optimizer enforces.
void check_values(const Parameter& p, const float* values, const std::string& file,
                  const std::string& remedy);

/// Identifies a data set in state.json: {"fingerprint", "sample", "tokenizer_sha256" or null}.
nlohmann::json describe_data(const ShardSet& shards);
/// For a mixture, the fingerprint covers the fingerprints and shares of its sources, and the sample
/// covers theirs. "sources" lists each source with its "path" and "weight". A single source is
/// described like its shards.
nlohmann::json describe_data(const std::vector<Source>& sources);
/// With tasks, the fingerprint also covers the tasks, their options, lengths and weights. "tasks"
/// lists them.
nlohmann::json describe_data(const Sequences& sequences);

/// SHA-256 of the tokenizer whose shards the checkpoint was trained on; empty: unknown. Throws
/// Error (ExitCode::checkpoint) if its state does not identify a data set.
std::string tokenizer_sha256(const Checkpoint& checkpoint);

/// In state.json: the checkpoint outside out_dir that the run started from; missing otherwise.
inline constexpr const char* kStartedFrom = "started_from";

/// Throws Error (ExitCode::checkpoint) naming file and member unless state.json holds what a run
/// writes: "config" (an object), "data" (describe_data and the number of "windows" read), "tokens",
/// and if present kStartedFrom and "best" (run/saves.h). The step is at most kMaxSteps. Other
/// members are ignored.
void check_run_state(const Checkpoint& checkpoint);

/// Throws Error (ExitCode::data) naming `source` if the checkpoint was trained on other data or
/// with another tokenizer than describe_data says `now`. `allow_other` permits other data, but
/// never another tokenizer. Old checkpoints have no sample to compare. Throws Error
/// (ExitCode::checkpoint) if `before`, the checkpoint's "data", does not identify a data set.
/// `where`: the checkpoint's folder.
void require_same_data(const nlohmann::json& before, const nlohmann::json& now,
                       const std::string& source, bool allow_other, const std::string& where);

/// Describes what require_same_data compared and what it did not; "" if `now` has no shards, or is
/// other data, which was allowed.
std::string compared_data(const nlohmann::json& before, const nlohmann::json& now);

}  // namespace bamtrain

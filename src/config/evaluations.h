#pragma once
// eval.tasks between JSON and TaskEvaluation: a list of {"task", "lengths", "samples", "seed",
// "every", "name", <the task's options>}.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "train/train_config.h"

namespace bamtrain {

/// The value at key `path`; lengths are sorted. Error (ExitCode::config) names the entry that is
/// none.
std::vector<TaskEvaluation> read_evaluations(const nlohmann::json& value, const std::string& path,
                                             const Origin& origin, int64_t version);
/// Its inverse, with every member.
nlohmann::ordered_json evaluations_json(const std::vector<TaskEvaluation>& evaluations);

/// The declared options; of passkey as a run has them that is trained on passkeys, but for the
/// tokenizer, which its data name.
Options measured_options(const TextTaskInfo& info, const std::vector<DataSource>& train);
/// What entries that read_evaluations() gave leave open becomes that. Error (ExitCode::config) at
/// the entry whose options do not go together then.
void derive_evaluations(const std::vector<DataSource>& train,
                        std::vector<TaskEvaluation>* evaluations);

ValueSchema evaluations_schema();

}  // namespace bamtrain

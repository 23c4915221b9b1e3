#pragma once
// Converts eval.tasks between JSON and TaskEvaluation: a list of {"task", "lengths", "samples",
// "seed", "every", "name", <the task's options>}.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/origin.h"
#include "config/value_schema.h"
#include "train/train_config.h"

namespace bamtrain {

/// Reads the value at key `path` and sorts lengths. Throws Error (ExitCode::config) naming the
/// invalid entry.
std::vector<TaskEvaluation> read_evaluations(const nlohmann::json& value, const std::string& path,
                                             const Origin& origin, int64_t version);
/// The inverse, with every member.
nlohmann::ordered_json evaluations_json(const std::vector<TaskEvaluation>& evaluations);

/// The declared options. For passkey, those of a passkey task in the training data, except the
/// tokenizer, which the run's data name.
Options measured_options(const TextTaskInfo& info, const std::vector<DataSource>& train);
/// Fills in the options that entries of read_evaluations() leave open. Throws Error
/// (ExitCode::config) at an entry whose options are then inconsistent.
void derive_evaluations(const std::vector<DataSource>& train,
                        std::vector<TaskEvaluation>* evaluations);

ValueSchema evaluations_schema();

}  // namespace bamtrain

#pragma once
// How long a run of a study has trained.

#include <optional>

#include "study/plan.h"

namespace bamtrain {

/// "seconds" of the last whole line of the run's metrics.jsonl; nullopt if there is none or it is
/// damaged. Reads the end of the file alone.
std::optional<double> seconds_of(const StudyRun& run);

}  // namespace bamtrain

#pragma once
// The facts with which a run's page begins.

#include <vector>

#include "report/report.h"
#include "train/run_config.h"

namespace bamtrain {

/// Of its config (null: before the first checkpoint), of its metrics, and of what it was started
/// on, as far as starts.json says that. What is not known is left out.
std::vector<RunFact> run_facts(const RunConfig* config, const RunRecord& record);

}  // namespace bamtrain

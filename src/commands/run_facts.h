#pragma once
// The facts at the top of a run's page.

#include <vector>

#include "report/report.h"
#include "train/run_config.h"

namespace bamtrain {

/// Facts of its config (null before the first checkpoint), of its metrics, and of its hardware and
/// software as far as starts.json records them. Unknown facts are left out.
std::vector<RunFact> run_facts(const RunConfig* config, const RunRecord& record);

}  // namespace bamtrain

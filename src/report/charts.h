#pragma once
// The charts of a report, by name.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/report.h"

namespace bamtrain {

/// A chart and its name on the command line.
struct NamedChart {
  std::string name;
  Chart chart;
};

/// Every chart of these runs, in page order; all names differ. The page omits constant ones
/// (constants.h). Throws Error (ExitCode::io) if a run's parameters do not fit its model.
std::vector<NamedChart> charts_of(const Runs& runs);

/// Chart names that do not depend on the runs.
std::vector<std::string> fixed_chart_names();

/// The chart `name`, with runs that differ only in their seed as one line (seeds.h). Throws Error
/// (ExitCode::usage) that lists the available charts, or states what these runs lack for that one;
/// (ExitCode::io) as charts_of.
Chart chart_of(const Runs& runs, const std::string& name);

}  // namespace bamtrain

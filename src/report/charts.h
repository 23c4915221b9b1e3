#pragma once
// The charts of a report, by name.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/report.h"

namespace bamtrain {

/// A chart and what the command line calls it.
struct NamedChart {
  std::string name;
  Chart chart;
};

/// Every chart that the page of these runs has, in its order; all names differ. Error
/// (ExitCode::io) where a run's parameters do not fit its model.
std::vector<NamedChart> charts_of(const Runs& runs);

/// The names that do not depend on what runs are called or have.
std::vector<std::string> fixed_chart_names();

/// The chart `name`, runs that differ in their seed alone as one line (seeds.h). Error
/// (ExitCode::usage) that names the charts there are, or says what these runs lack for that one;
/// (ExitCode::io) as charts_of.
Chart chart_of(const Runs& runs, const std::string& name);

}  // namespace bamtrain

#pragma once
// The page of a study: a chart against length for each group of metrics, with a band of one
// standard deviation over the repeats, its table, and the runs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/chart.h"
#include "study/table.h"

namespace bamtrain {

/// An entry of the list of runs.
struct PageRun {
  std::string label;
  std::string address;  // of its report, or else its folder, relative to the page; "": neither
  std::optional<double> seconds;  // of training
  RunState::Kind kind = RunState::Kind::to_do;
};

/// The study's runs. `table`: table_of() of the same runs.
std::vector<PageRun> page_runs(const Study& study, const std::vector<StudyRun>& runs,
                               const StudyTable& table);

/// One HTML file, bitwise identical for identical results and times. `trained`: the runs' training
/// lengths, to mark in the charts.
std::string study_page(const StudyTable& table, const std::vector<int64_t>& trained,
                       const std::vector<PageRun>& runs);

/// The chart of one group.
Chart study_chart(const StudyTable& table, size_t group, const std::vector<int64_t>& trained);

}  // namespace bamtrain

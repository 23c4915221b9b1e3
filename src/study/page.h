#pragma once
// The page of a study: a chart against length for each group of metrics, with a band of one
// standard deviation over the repeats, and its table.

#include <cstdint>
#include <string>
#include <vector>

#include "report/chart.h"
#include "study/table.h"

namespace bamtrain {

/// One HTML file, bitwise identical for identical results. `trained`: the runs' training lengths,
/// to mark in the charts.
std::string study_page(const StudyTable& table, const std::vector<int64_t>& trained);

/// The chart of one group.
Chart study_chart(const StudyTable& table, size_t group, const std::vector<int64_t>& trained);

}  // namespace bamtrain

#pragma once
// Charts of constants: a page states the value instead of drawing it.

#include <string>
#include <vector>

#include "report/charts.h"

namespace bamtrain {

/// Whether no run's values differ, although one has several. Runs are told apart by their style.
/// If the chart's x is measured too (Chart::x_measured), it must not vary either.
bool is_constant(const Chart& chart);

/// "learning rate: 0.001", or "learning rate: 0.001 (a), 0.002 (b)". REQUIRES: is_constant.
std::string constant_text(const Chart& chart);

struct DrawnCharts {
  std::string figures;    // of the charts that vary
  std::string constants;  // a paragraph with the values of the others; may be ""
};

/// `by_run`: also leaves out single runs that are constant, as where every key has weight.
DrawnCharts drawn_charts(const std::vector<NamedChart>& charts, bool by_run = false);

}  // namespace bamtrain

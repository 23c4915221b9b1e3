#include "report/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/join.h"
#include "report/markup.h"
#include "report/section.h"

namespace bamtrain {

namespace {

bool nearly_equal(double a, double b) {
  constexpr double kRounding = 1e-9;
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

/// The points of one run.
struct RunPoints {
  std::string name;
  Point first;
  bool several = false, varies = false;  // several: points of one series
};

std::map<int, RunPoints> by_style(const Chart& chart) {
  std::map<int, RunPoints> out;
  for (const Series& s : chart.series) {
    if (s.points.empty()) continue;
    RunPoints& run = out.emplace(s.style, RunPoints{s.name, s.points[0]}).first->second;
    run.several |= s.points.size() > 1;
    for (const Point& p : s.points) {
      run.varies |=
          !nearly_equal(p.y, run.first.y) || (chart.x_measured && !nearly_equal(p.x, run.first.x));
    }
  }
  return out;
}

bool none_varies(const std::map<int, RunPoints>& runs) {
  bool several = false;
  for (const auto& [style, run] : runs) {
    if (run.varies) return false;
    several |= run.several;
  }
  return several;
}

/// "title: 1 (a, b), 2 (c)"; without names if all have one value, unless `named`.
std::string constants_text(const Chart& chart, const std::map<int, RunPoints>& runs, bool named) {
  std::vector<std::pair<double, std::vector<std::string>>> values;
  for (const auto& [style, run] : runs) {
    const auto at = std::find_if(values.begin(), values.end(), [&, y = run.first.y](const auto& v) {
      return nearly_equal(v.first, y);
    });
    if (at == values.end()) {
      values.push_back({run.first.y, {run.name}});
    } else {
      at->second.push_back(run.name);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [value, names] : values) {
    const bool all = !named && values.size() == 1;
    texts.push_back(number_text(value, 4) + (all ? "" : " (" + join(names) + ")"));
  }
  return chart.title + ": " + join(texts);
}

}  // namespace

bool is_constant(const Chart& chart) { return none_varies(by_style(chart)); }

std::string constant_text(const Chart& chart) {
  return constants_text(chart, by_style(chart), false);
}

DrawnCharts drawn_charts(const std::vector<NamedChart>& charts, bool by_run) {
  DrawnCharts out;
  std::vector<std::string> texts;
  for (const NamedChart& named : charts) {
    std::map<int, RunPoints> runs = by_style(named.chart);
    if (none_varies(runs)) {
      texts.push_back(constants_text(named.chart, runs, false));
      continue;
    }
    Chart chart = named.chart;
    std::erase_if(runs, [&](const auto& of) { return of.second.varies || !of.second.several; });
    if (by_run && !runs.empty()) {
      texts.push_back(constants_text(chart, runs, true));
      std::erase_if(chart.series, [&](const Series& s) { return runs.count(s.style) > 0; });
    }
    out.figures += figure_of(chart);
  }
  if (!texts.empty()) {
    out.constants = "<p>Constant, so not drawn: " + escaped(join(texts, "; ")) + ".</p>\n";
  }
  return out;
}

}  // namespace bamtrain

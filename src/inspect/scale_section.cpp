#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inspect/colour_bar.h"
#include "inspect/map_figure.h"
#include "inspect/page_section.h"
#include "inspect/scale_fit.h"
#include "report/axis.h"
#include "report/page.h"
#include "report/section.h"

namespace bamtrain {

namespace {

/// Means of the heads' gates over the prompt's tokens: layers are rows, heads are columns.
std::string layer_map(const Inspection& found, const std::string& name) {
  MapFigure map;
  map.title = name;
  map.unit = name;
  map.colours = MapColours::signs;
  for (const LayerView& view : found.layers) {
    for (const GateRows& gate : view.gates) {
      if (gate.name != name) continue;
      map.columns = view.H;
      map.rows += 1;
      map.row_names += (map.row_names.empty() ? "" : " ") + std::to_string(view.layer);
      for (int64_t h = 0; h < view.H; ++h) {
        double sum = 0;
        for (const double x : of_head(gate.values, h, view.T)) sum += x;
        map.values.push_back(static_cast<float>(sum / static_cast<double>(view.T)));
      }
    }
  }
  if (map.rows == 0) return "";
  map.most = largest_size(map.values);
  map.bar = colour_bar(map.colours, map.most, map.most);
  return map_figure(map);
}

/// Histogram of each layer's numbers: shares by bin, one line per layer.
Chart distribution(const Inspection& found, const std::string& title,
                   const std::vector<double>* (*of)(const LayerView&, const std::string&),
                   const std::string& name) {
  constexpr int kBins = 40;
  Chart chart = head_chart(title, name);
  chart.from_zero = true;
  double low = INFINITY, high = -INFINITY;
  for (const LayerView& view : found.layers) {
    const std::vector<double>* const values = of(view, name);
    if (!values) continue;
    for (const double x : *values) {
      if (!std::isfinite(x)) continue;
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  if (!(low < high)) return chart;
  for (const LayerView& view : found.layers) {
    const std::vector<double>* const values = of(view, name);
    if (!values) continue;
    std::vector<double> counts(kBins, 0);
    for (const double x : *values) {
      if (!std::isfinite(x)) continue;
      const auto bin = static_cast<int>((x - low) / (high - low) * kBins);
      counts[static_cast<size_t>(std::min(bin, kBins - 1))] += 1;
    }
    Series s = {fmt::format("layer {}", view.layer),
                static_cast<int>(view.layer),
                true,
                false,
                0.9,
                {},
                {}};
    for (int n = 0; n < kBins; ++n) {
      s.points.push_back(
          {low + (high - low) * (n + 0.5) / kBins,
           100 * counts[static_cast<size_t>(n)] / static_cast<double>(values->size())});
    }
    chart.series.push_back(std::move(s));
  }
  return chart;
}

const std::vector<double>* scale_of(const LayerView& view, const std::string&) {
  return view.scale.empty() ? nullptr : &view.scale;
}
const std::vector<double>* scores_of_gate(const LayerView& view, const std::string& name) {
  for (const GateRows& gate : view.gates) {
    if (gate.name == name) return &gate.values;
  }
  return nullptr;
}

}  // namespace

std::string scale_section(const Inspection& found) {
  std::string distributions =
      figure_of(distribution(found, "scale t of all heads and queries, % of them", scale_of, "t"));
  std::string maps;
  for (const char* name : {"beta", "gamma", "u"}) {
    distributions += figure_of(
        distribution(found, fmt::format("gates {}, % of them", name), scores_of_gate, name));
    maps += layer_map(found, name);
  }
  std::string rows, fits;
  std::vector<std::vector<std::string>> cells;
  for (const LayerView& view : found.layers) {
    if (view.scale.empty()) continue;
    Chart chart =
        head_chart(fmt::format("layer {}: scale t by visible keys", view.layer), "visible keys");
    chart.x = Spacing::logarithmic;
    for (int64_t h = 0; h < view.H; ++h) {
      const std::vector<double> t = of_head(view.scale, h, view.T);
      std::vector<std::pair<int64_t, double>> sorted;
      for (int64_t i = 0; i < view.T; ++i) {
        sorted.emplace_back(view.keys[static_cast<size_t>(i)], t[static_cast<size_t>(i)]);
      }
      std::sort(sorted.begin(), sorted.end());
      Series s = {fmt::format("head {}", h), static_cast<int>(h), true, false, 0.8, {}, {}};
      for (const auto& [n, y] : sorted) s.points.push_back({static_cast<double>(n), y});
      chart.series.push_back(std::move(s));
      const std::optional<ScaleFits> fit = fit_scale(view.keys, t);
      if (!fit) continue;
      Series line = {fmt::format("fit of head {}", h),
                     static_cast<int>(h % kChartColours) + kChartColours,
                     true,
                     false,
                     1,
                     {},
                     {}};
      for (const auto& [keys, y] : sorted) {
        if (keys < 2) continue;
        const auto x = static_cast<double>(keys);
        line.points.push_back({x, fit->power.power(x)});
      }
      chart.series.push_back(std::move(line));
      const auto n = [](double x) { return number_text(x, 3); };
      cells.push_back({fmt::format("{}, {}", view.layer, h), n(fit->power.delta),
                       n(fit->power.beta), n(fit->power.gamma), n(fit->power.r2), n(fit->log.delta),
                       n(fit->log.beta), n(fit->log.r2), n(fit->linear.r2)});
    }
    rows += figure_of(chart);
  }
  if (!cells.empty()) {
    fits = paragraph(
               "Least squares over the queries that see two keys or more: delta + beta "
               "(log n)^gamma, delta + beta log n, and delta + beta n. R\u00b2 is 1 for a "
               "fit through every point, 0 for one no better than the mean. Heads whose "
               "scale is the same everywhere have none.") +
           table({"layer, head", "delta", "beta", "gamma", "R\u00b2", "delta, log", "beta, log",
                  "R\u00b2, log", "R\u00b2, linear"},
                 cells);
  }
  std::string out;
  if (!distributions.empty()) {
    out += section("Scales and gates",
                   paragraph("Distributions over the prompt's tokens and all heads, a line per "
                             "layer.") +
                       layer_legend(found) + grid_of(distributions) +
                       (maps.empty() ? ""
                                     : paragraph("Means over the prompt's tokens, layers from top "
                                                 "to bottom, heads from left to right.") +
                                           "<div class=\"maps\">\n" + maps + "</div>\n"));
  }
  if (!rows.empty()) {
    out += section("Scales by the number of keys",
                   paragraph("Of each query, and dashed the fit delta + beta (log n)^gamma.") +
                       head_legend(found.layers[0].H) + grid_of(rows) + fits);
  }
  return out;
}

}  // namespace bamtrain

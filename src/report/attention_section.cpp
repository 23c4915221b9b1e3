#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "report/constants.h"
#include "report/section.h"

namespace bamtrain {

namespace {

/// Adds a run's heads as points, and a line through the layers' means.
void add_run(Chart& chart, const std::string& run, int style, const HeadMeans& layers,
             const char* unit) {
  Series heads = {run, style, false, true, 1, {}, {}},
         means = {run, style, true, false, 0.6, {}, {}};
  for (size_t l = 0; l < layers.size(); ++l) {
    const std::vector<double>& values = layers[l];
    const auto x = static_cast<double>(l);
    for (size_t h = 0; h < values.size(); ++h) {
      heads.points.push_back({x, values[h]});
      heads.notes.push_back(
          fmt::format("{}, layer {}, head {}: {} {}", run, l, h, number_text(values[h], 4), unit));
    }
    if (values.empty()) continue;
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    means.points.push_back({x, sum / static_cast<double>(values.size())});
  }
  if (means.points.size() > 1) chart.series.push_back(std::move(means));
  if (heads.points.size() <= kMostHeads) chart.series.push_back(std::move(heads));
  if (layers.size() > kMostLengthTicks) return;
  for (size_t l = chart.x_ticks.size(); l < layers.size(); ++l) {
    chart.x_ticks.push_back(static_cast<double>(l));
  }
}

}  // namespace

std::vector<NamedChart> attention_charts(const Runs& runs) {
  Chart entropy, nonzero_keys, nonzero_blocks;
  entropy.title = "entropy of attention, nats";
  nonzero_keys.title = "nonzero keys of attention";
  nonzero_blocks.title = "nonzero blocks of attention, %";
  for (Chart* chart : {&entropy, &nonzero_keys, &nonzero_blocks}) {
    chart->x_title = "layer";
    chart->from_zero = true;
  }
  for (size_t n = 0; n < runs.size(); ++n) {
    const std::optional<AttentionRecord>& of = runs[n].record->attention;
    if (!of) continue;
    const auto style = static_cast<int>(n);
    add_run(entropy, runs[n].name, style, of->entropy, "nats");
    add_run(nonzero_keys, runs[n].name, style, of->nonzero_keys, "keys");
    HeadMeans percent = of->nonzero_blocks;
    for (std::vector<double>& heads : percent) {
      for (double& share : heads) share *= 100;
    }
    add_run(nonzero_blocks, runs[n].name, style, percent, "%");
  }
  return {{"attention-entropy", std::move(entropy)},
          {"attention-support", std::move(nonzero_keys)},
          {"attention-live-tiles", std::move(nonzero_blocks)}};
}

std::string attention_section(const Runs& runs) {
  const auto [figures, constants] = drawn_charts(attention_charts(runs), true);
  if (figures.empty() && constants.empty()) return "";
  return section("Attention",
                 "<p>Means over the rows of the first sequences of the last validation pass: the "
                 "entropy of a row's weights, its number of nonzero keys, and the share of blocks "
                 "of 16 rows and 64 keys with a nonzero weight, which are computed. Points are "
                 "heads, lines the means over a layer's heads.</p>\n" +
                     (figures.empty() ? "" : legend(runs) + grid_of(figures)) + constants);
}

}  // namespace bamtrain

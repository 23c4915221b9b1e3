#include "inspect/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inspect/map_figure.h"
#include "inspect/page_section.h"
#include "report/axis.h"
#include "report/constants.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/report.h"
#include "report/section.h"

namespace bamtrain {

namespace {

using Member = std::vector<float> AttentionValues::*;

/// Against the distance from the last query.
void add_last(Chart& chart, const LayerView& view, Member member) {
  for (int64_t h = 0; h < view.H; ++h) {
    Series s = {fmt::format("head {}", h), static_cast<int>(h), true, false, 0.8, {}, {}};
    for (int64_t j = view.T - 1; j >= 0; --j) {
      const float x = (view.last.*member)[static_cast<size_t>(h * view.T + j)];
      if (std::isnan(x) || (member == &AttentionValues::weights && j < view.T - view.keys.back())) {
        continue;
      }
      s.points.push_back({static_cast<double>(view.T - 1 - j), x});
    }
    chart.series.push_back(std::move(s));
  }
}

std::string last_section(const Inspection& found) {
  std::string out;
  for (const LayerView& view : found.layers) {
    const struct {
      const char* title;
      Member member;
    } charts[] = {{"scores", &AttentionValues::scores},
                  {"prior's bias, which the mix reads", &AttentionValues::prior},
                  {"bias", &AttentionValues::bias},
                  {"logits", &AttentionValues::logits},
                  {"weights", &AttentionValues::weights}};
    std::string figures;
    for (const auto& c : charts) {
      if ((view.last.*c.member).empty()) continue;
      Chart chart = head_chart(fmt::format("layer {}: {}", view.layer, c.title), "distance");
      const bool bias = c.member == &AttentionValues::bias || c.member == &AttentionValues::prior ||
                        c.member == &AttentionValues::logits;
      if (bias) chart.y_floor = -1e3;
      add_last(chart, view, c.member);
      figures += figure_of(chart);
    }
    out += folded(view, out.empty(), "", grid_of(figures));
  }
  return section("The last query",
                 paragraph("By distance from the key to the prompt's last token. Scores are the "
                           "products of query and key as attention divides them, before scale and "
                           "bias; logits are what the normalizer reads.") +
                     head_legend(found.layers[0].H) + out);
}

/// One point per head, at its layer.
template <class F>
Chart layer_chart(const Inspection& found, const std::string& title, F&& value) {
  Chart chart = head_chart(title, "layer");
  chart.from_zero = true;
  Series heads = {title, 0, false, true, 1, {}, {}}, means = {title, 0, true, false, 0.6, {}, {}};
  for (const LayerView& view : found.layers) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t h = 0; h < view.H; ++h) {
      const double y = value(view, h);
      if (!std::isfinite(y)) continue;
      const auto x = static_cast<double>(view.layer);
      heads.points.push_back({x, y});
      heads.notes.push_back(fmt::format("layer {}, head {}: {}", view.layer, h, number_text(y, 4)));
      sum += y;
      ++count;
    }
    if (count > 0) {
      means.points.push_back({static_cast<double>(view.layer), sum / static_cast<double>(count)});
    }
    chart.x_ticks.push_back(static_cast<double>(view.layer));
  }
  if (chart.x_ticks.size() > 12) chart.x_ticks.clear();
  if (means.points.size() > 1) chart.series.push_back(std::move(means));
  chart.series.push_back(std::move(heads));
  return chart;
}

std::string head_section(const Inspection& found) {
  const auto chart = [&](const std::string& title, double HeadSummary::*member) {
    return NamedChart{"", layer_chart(found, title, [member](const LayerView& view, int64_t h) {
                        return summary_of(view, h).*member;
                      })};
  };
  const DrawnCharts summaries =
      drawn_charts({chart("entropy, nats", &HeadSummary::entropy),
                    chart("nonzero keys", &HeadSummary::nonzero_keys),
                    chart("distance to the centroid, tokens", &HeadSummary::distance),
                    chart("largest weight", &HeadSummary::largest)});
  std::string centroids;
  for (const LayerView& view : found.layers) {
    Chart c =
        head_chart(fmt::format("layer {}: centroid of each query's weights", view.layer), "query");
    Series self = {"the query itself", 6 + 7, true, false, 0.7, {}, {}};
    for (int64_t i : {int64_t{0}, view.T - 1}) {
      self.points.push_back({static_cast<double>(i), static_cast<double>(i)});
    }
    c.series.push_back(std::move(self));
    for (int64_t h = 0; h < view.H; ++h) {
      Series s = {fmt::format("head {}", h), static_cast<int>(h), true, false, 0.8, {}, {}};
      for (int64_t i = 0; i < view.T; ++i) {
        const double y = view.centroid[static_cast<size_t>(h * view.T + i)];
        if (std::isfinite(y)) s.points.push_back({static_cast<double>(i), y});
      }
      c.series.push_back(std::move(s));
    }
    centroids += figure_of(c);
  }
  return section("Heads",
                 paragraph("Means over the prompt's queries: the entropy of a row's weights, its "
                           "number of nonzero keys, the distance from the query to the weights' "
                           "centroid, and the largest weight. Points are heads, lines the means "
                           "over a layer's heads.") +
                     grid_of(summaries.figures) + summaries.constants) +
         section("Centroids",
                 paragraph("The mean position of the keys that a query looks at, by their weights; "
                           "grey and dashed: the query itself.") +
                     head_legend(found.layers[0].H) + grid_of(centroids));
}

Chart depth_chart(const std::string& title, const std::vector<double>& values) {
  Chart chart = head_chart(title, "layers before");
  chart.y = Spacing::logarithmic;
  Series s = {title, 0, true, true, 1, {}, {}};
  for (size_t l = 0; l < values.size(); ++l) {
    if (!std::isfinite(values[l]) || values[l] <= 0) continue;
    s.points.push_back({static_cast<double>(l), values[l]});
    s.notes.push_back(fmt::format("after {} layers: {}", l, number_text(values[l], 4)));
  }
  chart.series.push_back(std::move(s));
  return chart;
}

std::string depth_section(const Inspection& found) {
  std::string notes, figures = figure_of(depth_chart("gradient norm", found.gradient.values));
  Chart reached = head_chart("tokens that a query leads to, mean", "layer");
  Chart paths = head_chart("log10 of the paths to the last token", "layer");
  reached.from_zero = paths.from_zero = true;
  Series edges = {"tokens", 0, true, true, 1, {}, {}},
         all = {"log10 of paths", 0, true, true, 1, {}, {}};
  for (const LayerView& view : found.layers) {
    const auto x = static_cast<double>(view.layer);
    edges.points.push_back({x, view.reached});
    edges.notes.push_back(fmt::format("layer {}: {}", view.layer, number_text(view.reached, 4)));
    all.points.push_back({x, view.log10_paths});
    all.notes.push_back(
        fmt::format("layer {}: 10^{}", view.layer, number_text(view.log10_paths, 4)));
  }
  reached.series.push_back(std::move(edges));
  paths.series.push_back(std::move(all));
  figures += figure_of(reached) + figure_of(paths);
  figures +=
      figure_of(depth_chart("last token repeated: relative distance", found.repeated.values));
  Chart collapse = head_chart("collapse probe: distance of last states", "length");
  collapse.x = collapse.y = Spacing::logarithmic;
  for (size_t n = 0; n < found.collapse.size(); ++n) {
    const CollapseCurve& curve = found.collapse[n];
    const bool constant = curve.prefix == CollapsePrefix::constant;
    Series s = {curve.normalizer + (constant ? ", constant prefix" : ", random prefix"),
                static_cast<int>(n),
                true,
                true,
                1,
                {},
                {}};
    for (const CollapseGap& at : curve.gaps) {
      if (!(at.gap > 0)) continue;
      s.points.push_back({static_cast<double>(at.n), at.gap});
      s.notes.push_back(fmt::format("{}, {} tokens: {}", s.name, at.n, number_text(at.gap, 4)));
    }
    collapse.series.push_back(std::move(s));
  }
  figures += figure_of(collapse);
  std::string legend = "<p class=\"legend\">";
  for (size_t n = 0; n < found.collapse.size(); ++n) {
    const CollapseCurve& curve = found.collapse[n];
    legend += fmt::format("<span><span class=\"key {}\"></span>{}, {} prefix</span>\n",
                          style_class(static_cast<int>(n)), escaped(curve.normalizer),
                          curve.prefix == CollapsePrefix::constant ? "constant" : "random");
  }
  legend += "</p>\n";
  for (const auto& [what, depth] :
       {std::pair{"No gradient: ", &found.gradient}, {"No repeated token: ", &found.repeated}}) {
    if (!depth->missing.empty()) notes += paragraph(what + depth->missing + ".");
  }
  return section(
      "Depth",
      paragraph("The norm of the gradient of the prompt's mean loss with respect to the stream "
                "that enters each layer, and the final norm. The tokens of a layer's input that a "
                "query gets something from, by any head's weights or by the stream itself, and how "
                "many ways lead so from the last token to the input of the first layer shown. How "
                "far the last token's stream is from that of its repetition, over its own size. "
                "And the probe of ASEntmax, appendix D.2, of the normalizer alone: 0 is not "
                "drawn.") +
          notes + legend + grid_of(figures));
}

std::string facts_table(const InspectedModel& model, const Inspection& found) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : model.facts) rows.push_back({escaped(name), escaped(value)});
  double error = 0;
  for (const LayerView& view : found.layers) error = std::max(error, view.error);
  rows.push_back({"check", fmt::format("weights times values are the layers' own output but for "
                                       "{} of its largest number",
                                       number_text(error, 2))});
  return "<div class=\"facts\">" + table({"", ""}, rows) + "</div>\n";
}

std::string prompt_text(const InspectedModel& model) {
  constexpr size_t kMostShown = 2000;
  std::string text = model.prompt;
  if (text.size() > kMostShown) {
    size_t end = kMostShown;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character
    text = text.substr(0, end) + "\u2026";
  }
  return "<blockquote>" + escaped(text) + "</blockquote>\n";
}

}  // namespace

std::string inspection_html(const InspectedModel& model, const InspectionRequest& request,
                            const Inspection& found) {
  RunRecord record;
  record.parameters = model.parameters;
  const Runs runs = {{model.name, model.name, &record, request.config, request.training_length}};
  return html_page("inspect", model.name,
                   "<h1>" + escaped(model.name) + "</h1>\n" + facts_table(model, found) +
                       prompt_text(model) + weight_section(found) + head_section(found) +
                       last_section(found) + bias_section(found) + mechanism_sections(runs) +
                       scale_section(found) + depth_section(found) + map_page_parts(model.tokens));
}

}  // namespace bamtrain

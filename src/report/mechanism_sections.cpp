#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/constants.h"
#include "report/mechanism_curves.h"
#include "report/section.h"

namespace bamtrain {

namespace {

constexpr double kLowestBias = -20;  // exp(-20) is invisible

std::string layers_text(const std::vector<int64_t>& layers) {
  std::string out = layers.size() == 1 ? "layer " : "layers ";
  for (size_t i = 0; i < layers.size();) {
    size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    out += fmt::format("{}{}", i == 0 ? "" : ", ", layers[i]);
    if (end - i > 1) out += fmt::format(" to {}", layers[end - 1]);
    i = end;
  }
  return out;
}

std::string metrics_file(const ReportedRun& run) { return run.folder + "/metrics.jsonl"; }

/// The lowest and the highest value; NaN if there are no values.
struct Extent {
  double low = NAN, high = NAN;

  /// Skips values that no axis can show: they are not drawn.
  void add(double value) {
    if (!has_place(value)) return;
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
};

/// Extent of the curves with one title; kept small, for very many layers.
struct CurveExtent {
  Extent x, y;

  void add(const std::vector<std::vector<Point>>& heads) {
    for (const std::vector<Point>& points : heads) {
      for (const Point& p : points) {
        x.add(p.x);
        y.add(std::max(p.y, kLowestBias));
      }
    }
  }
};

struct DrawnPrior {
  std::string title;  // placed between the run's name and the layers
  bool mixed;         // input of a mix of heads
  Chart chart;
};

/// Charts with one title share their axes.
std::vector<DrawnPrior> drawn_priors(const Runs& runs) {
  std::vector<DrawnPrior> all;
  std::map<std::string, CurveExtent> extents;  // by title
  for (size_t n = 0; n < runs.size(); ++n) {
    const ReportedRun& run = runs[n];
    if (!run.model) continue;
    for (const PriorCurves& of :
         prior_curves(*run.model, run.training_length, run.record->parameters, metrics_file(run))) {
      const bool mixed = !of.mix.empty();
      const std::string title =
          mixed ? fmt::format("what {} reads: {}", of.mix, of.prior) : of.prior;
      Chart chart;
      chart.title = fmt::format("{}: {}, {}", run.name, title, layers_text(of.layers));
      chart.x_title = "distance";
      chart.x = Spacing::logarithmic;
      chart.y_floor = kLowestBias;
      chart.y_title = mixed ? "bias" : "added to a logit";
      if (of.heads.size() > 1) {
        chart.key = fmt::format("{}, {}: heads 0 to {}, fading", title, layers_text(of.layers),
                                of.heads.size() - 1);
      }
      const auto heads = static_cast<double>(of.heads.size());
      for (size_t h = 0; h < of.heads.size(); ++h) {
        const double strength = 1 - 0.65 * static_cast<double>(h) / heads;
        chart.series.push_back({fmt::format("head {}", h),
                                static_cast<int>(n),
                                true,
                                false,
                                strength,
                                of.heads[h],
                                {}});
      }
      extents[title].add(of.heads);
      all.push_back({title, mixed, std::move(chart)});
    }
  }
  for (DrawnPrior& d : all) {
    const CurveExtent& e = extents[d.title];
    d.chart.others = {{e.x.low, e.y.low}, {e.x.high, e.y.high}};
  }
  return all;
}

std::string prior_sections(const Runs& runs) {
  std::vector<NamedChart> of_logits, of_mixes;
  for (DrawnPrior& d : drawn_priors(runs)) {
    (d.mixed ? of_mixes : of_logits).push_back({"", std::move(d.chart)});
  }
  const DrawnCharts added = drawn_charts(of_logits), read = drawn_charts(of_mixes);
  const std::string how =
      "By distance from the key to the query, up to the training length; a line per head, the "
      "first the strongest; charts of one prior have the same axes. Below " +
      number_text(kLowestBias) +
      " it is cut off. fire depends on the query's position: that of a training sequence's last.";
  std::string out;
  if (!added.figures.empty() || !added.constants.empty()) {
    out += section("What the priors add to a logit",
                   "<p>" + how + "</p>\n" + grid_of(added.figures) + added.constants);
  }
  if (!read.figures.empty() || !read.constants.empty()) {
    out += section("What mixes of heads read",
                   "<p>The biases B of the prior that is a mix's base, not what is added to a "
                   "logit: that depends on the scores of all heads too. " +
                       how + "</p>\n" + grid_of(read.figures) + read.constants);
  }
  return out;
}

std::string head_note(const std::string& run, const HeadPoint& p, const std::string& values) {
  return fmt::format("{}, layer {}, head {}: {}", run, p.layer, p.head, values);
}

std::vector<NamedChart> parameter_charts(const Runs& runs) {
  Chart bam;
  bam.title = "bam: theta_alpha against theta_beta";
  bam.x_measured = true;
  bam.x_title = "theta_beta";
  bam.y_title = "theta_alpha";
  std::vector<Chart> scales;
  for (size_t n = 0; n < runs.size(); ++n) {
    const ReportedRun& run = runs[n];
    if (!run.model) continue;
    const auto style = static_cast<int>(n);
    Series s = {run.name, style, false, true, 1, {}, {}};
    for (const HeadPoint& p :
         bam_points(*run.model, run.training_length, run.record->parameters, metrics_file(run))) {
      s.points.push_back(p.at);
      s.notes.push_back(head_note(run.name, p,
                                  fmt::format("theta_beta {}, theta_alpha {}",
                                              number_text(p.at.x, 4), number_text(p.at.y, 4))));
    }
    bam.series.push_back(std::move(s));
    const std::string& name = run.model->attention.scale.name();
    for (const ScaleParameter& of : scale_parameters(*run.model, run.training_length,
                                                     run.record->parameters, metrics_file(run))) {
      const std::string title = fmt::format("{}: {} of each head, by layer", name, of.name);
      auto chart = std::find_if(scales.begin(), scales.end(),
                                [&](const Chart& c) { return c.title == title; });
      if (chart == scales.end()) {
        scales.emplace_back();
        chart = scales.end() - 1;
        chart->title = title;
        chart->x_title = "layer";
        chart->y_title = fmt::format("{} of {}", of.name, name);
      }
      Series values = {run.name, style, false, true, 1, {}, {}};
      for (const HeadPoint& p : of.points) {
        values.points.push_back(p.at);
        values.notes.push_back(
            head_note(run.name, p, fmt::format("{} {}", of.name, number_text(p.at.y, 4))));
      }
      if (run.model->layers <= static_cast<int64_t>(kMostLengthTicks)) {
        for (auto l = static_cast<int64_t>(chart->x_ticks.size()); l < run.model->layers; ++l) {
          chart->x_ticks.push_back(static_cast<double>(l));
        }
      }
      chart->series.push_back(std::move(values));
    }
  }
  std::vector<NamedChart> out = {{"bam-parameters", std::move(bam)}};
  for (Chart& c : scales) out.push_back({chart_name(c.title), std::move(c)});
  return out;
}

std::string parameter_section(const Runs& runs) {
  const auto [figures, constants] = drawn_charts(parameter_charts(runs));
  return section("Parameters of priors, scales and normalizers",
                 figures.empty() ? constants : legend(runs) + grid_of(figures) + constants);
}

}  // namespace

std::vector<NamedChart> mechanism_charts(const Runs& runs) {
  std::vector<NamedChart> out;
  for (DrawnPrior& d : drawn_priors(runs)) {
    out.push_back({chart_name(d.chart.title), std::move(d.chart)});
  }
  for (NamedChart& c : parameter_charts(runs)) out.push_back(std::move(c));
  return out;
}

std::string mechanism_sections(const Runs& runs) {
  return prior_sections(runs) + parameter_section(runs);
}

}  // namespace bamtrain

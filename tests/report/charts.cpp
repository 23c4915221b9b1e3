#include "report/charts.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/error.h"
#include "priors/registry.h"
#include "report/section.h"
#include "scales/registry.h"

using namespace bamtrain;

namespace {

RunRecord evaluated(double scale) {
  RunRecord out;
  MetricsLine m = {1, 100, 5, 1e-3, 2, 500, NAN, NAN, NAN};
  m.seconds = 60;
  out.metrics.add(m);
  out.perplexity = {2, 64, 32, "f", {{64, 50 * scale}, {256, 51 * scale}}, {{64, 48}}, {}};
  return out;
}

std::string message_of(const Runs& runs, const std::string& name) {
  try {
    chart_of(runs, name);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::usage);
    return e.what();
  }
  FAIL("no error");
  return "";
}

}  // namespace

TEST_CASE("charts of many layers know no more of each other than their extents") {
  constexpr int kLayers = 20;
  RunRecord record = evaluated(1);
  for (int l = 0; l < kLayers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".self_attn.prior.";
    record.parameters[layer + "theta_alpha"] = {0, 0.01 * l};
    record.parameters[layer + "theta_beta"] = {1, 1};
    record.parameters[layer + "theta_mu"] = {0, l == 7 ? 2.0 : 0};
  }
  ModelConfig model;
  model.vocab = 10;
  model.width = 8;
  model.layers = kLayers;
  model.heads = model.kv_heads = 2;
  model.attention.prior = PriorChoice(*find_prior("bam"));
  model.attention.scale = ScaleChoice(*find_scale("none"));
  const Runs runs = {{"a", "a", &record, model, 64}};
  std::vector<Chart> charts;
  for (const NamedChart& c : charts_of(runs)) {
    if (c.name.starts_with("a-bam-layer-")) charts.push_back(c.chart);
  }
  REQUIRE(charts.size() == kLayers);
  Chart whole = charts[0];
  whole.others.clear();
  whole.series.clear();
  for (const Chart& c : charts) {
    whole.series.insert(whole.series.end(), c.series.begin(), c.series.end());
  }
  const ChartAxes held = axes_of(whole);
  for (const Chart& c : charts) {
    CHECK(c.others.size() == 2);
    const ChartAxes axes = axes_of(c);
    CHECK(axes.x.low == held.x.low);
    CHECK(axes.x.high == held.x.high);
    CHECK(axes.y.low == held.y.low);
    CHECK(axes.y.high == held.y.high);
  }
}

TEST_CASE("charts have names, those of one prior's curves their own") {
  RunRecord record = evaluated(1);
  const std::string layer = "model.layers.0.self_attn.prior.";
  record.parameters = {{layer + "theta_alpha", {0, 1}},
                       {layer + "theta_beta", {1, 0.5}},
                       {layer + "theta_mu", {0, 0}}};
  ModelConfig model;
  model.vocab = 10;
  model.width = 8;
  model.layers = 1;
  model.heads = model.kv_heads = 2;
  model.attention.prior = PriorChoice(*find_prior("bam"));
  model.attention.scale = ScaleChoice(*find_scale("none"));
  const Runs runs = {{"A/b", "a", &record, model, 64}, {"A b", "b", &record, model, 64}};
  std::vector<std::string> names;
  for (const NamedChart& c : charts_of(runs)) {
    names.push_back(c.name);
    CHECK(has_points(chart_of(runs, c.name)));
    CHECK_FALSE(c.chart.x_title.empty());
  }
  CHECK(names == std::vector<std::string>{"perplexity", "perplexity-last", "loss", "loss-time",
                                          "gradient-norm", "learning-rate", "tokens-per-second",
                                          "a-b-bam-layer-0", "a-b-bam-layer-0-2",
                                          "bam-parameters"});
  // The lines of all heads belong to one run, so the legend has one entry.
  CHECK(chart_of(runs, "a-b-bam-layer-0").key == "bam, layer 0: heads 0 to 1, fading");
  // All other names are fixed.
  const std::vector<std::string> fixed = fixed_chart_names();
  for (const std::string& name : names) {
    if (name.starts_with("a-b-")) continue;
    CHECK(std::find(fixed.begin(), fixed.end(), name) != fixed.end());
  }
}

TEST_CASE("ranges of positions and of documents are drawn at their middles") {
  RunRecord record = evaluated(1);
  record.perplexity->positions = {{1, 9, std::nullopt, 0}, {2, 8, std::nullopt, 1}};
  record.perplexity->short_documents = {{64, 7, 0.5, 2}};
  const Runs runs = {{"a", "a", &record, std::nullopt, 0}};
  const Chart positions = chart_of(runs, "perplexity-positions");
  CHECK(positions.x == Spacing::linear);
  REQUIRE(positions.series.size() == 1);
  CHECK(positions.series[0].points[1].x == 1.5);
  CHECK(positions.series[0].points[1].y == 8);
  const Chart whole = chart_of(runs, "perplexity-short");
  CHECK(whole.series[0].points[0].x == 33);
  CHECK(whole.series[0].errors[0] == 0.5);
}

TEST_CASE("a chart that is not there is an error that says which are") {
  RunRecord record = evaluated(1), none;
  const Runs runs = {{"a", "a", &record, std::nullopt, 0}};
  CHECK(message_of(runs, "perplxity") ==
        "--figure: unknown figure 'perplxity'; did you mean perplexity?");
  CHECK(message_of(runs, "list") ==
        "--figure: unknown figure 'list'; these runs have perplexity, perplexity-last, loss, "
        "loss-time, gradient-norm, learning-rate, tokens-per-second");
  const std::string validation = message_of(runs, "validation-loss");
  CHECK(validation.find("--figure validation-loss: these runs have no validation losses (they "
                        "have perplexity, ") == 0);
  CHECK(validation.find("data.val and eval.every") != std::string::npos);
  // Each name offered by the help has its own message if there is no data.
  for (const std::string& name : fixed_chart_names()) {
    CHECK(message_of({{"n", "n", &none, std::nullopt, 0}}, name)
              .find("--figure " + name + ": these runs have no ") == 0);
  }
}

TEST_CASE("a chart by name is of seeds together") {
  RunRecord one = evaluated(1), four = evaluated(4);
  const Runs runs = {{"bam-1", "a", &one, std::nullopt, 0, {}, "r", 1},
                     {"bam-2", "b", &four, std::nullopt, 0, {}, "r", 2}};
  const Chart chart = chart_of(runs, "perplexity");
  REQUIRE(chart.series.size() == 1);
  CHECK(chart.series[0].name == "bam (2 seeds)");
  CHECK(chart.series[0].points[0].y == Approx(100));  // exp of the mean of ln 50 and ln 200
  CHECK(chart.series[0].points[1].y == Approx(102));
  CHECK(chart.marks.size() == 1);
}

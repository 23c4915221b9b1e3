// Differences in a report: between runs, and between lengths of one run.

#include "report/paired_perplexities.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/student_t.h"
#include "report/charts.h"
#include "report/figure.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using Sums = std::vector<Cluster>;

/// A row of documents with these sums over two targets each.
LengthPerplexity row_of(int64_t length, const std::vector<double>& sums,
                        const std::string& targets = "t") {
  LengthPerplexity row;
  row.length = length;
  for (const double sum : sums) row.clusters.push_back({sum, 2});
  const ClusteredMean m = clustered_mean(row.clusters);
  row.perplexity = std::exp(m.mean);
  row.error = m.error_of_exp();
  row.targets = targets;
  return row;
}

PerplexityResult result_of(const std::vector<LengthPerplexity>& windows) {
  return {2, 64, 32, "f", windows, {}, {}};
}

/// Documents that differ far more from each other than two models do.
const std::vector<double> kBase = {2, 4, 6, 8}, kBetter = {1.8, 3.81, 5.8, 7.79},
                          kEqual = {2.1, 3.9, 6.1, 7.9};

struct TwoRuns {
  RunRecord a, b;
  Runs runs = {{"a & b", "a", &a, std::nullopt, 0}, {"better", "b", &b, std::nullopt, 0}};

  TwoRuns() {
    a.perplexity = result_of({row_of(64, kBase), row_of(256, kBase)});
    b.perplexity = result_of({row_of(64, kBetter), row_of(256, kEqual)});
  }
  PairedPerplexities paired() const { return {runs, &PerplexityResult::windows}; }
  const LengthPerplexity& row(size_t n) const { return b.perplexity->windows[n]; }
};

}  // namespace

TEST_CASE("each run differs from the first by the documents' differences") {
  const TwoRuns t;
  const PairedPerplexities paired = t.paired();
  CHECK(paired.baseline() == "a & b");
  CHECK(paired.notes().empty());
  CHECK(paired.of(0, t.a.perplexity->windows[0]) == nullptr);
  const PerplexityDifference* const d = paired.of(1, t.row(0));
  REQUIRE(d != nullptr);
  // The mean of all targets is 2.5 in the first run, 0.1 less in the second; the documents'
  // differences are -0.2, -0.19, -0.2, -0.21.
  CHECK(d->difference.value == Approx(std::exp(2.4) - std::exp(2.5)));
  const double error = std::sqrt(4.0 / 3 * 2 * 0.01 * 0.01) / 8;
  CHECK(*d->difference.p == Approx(student_two_sided(0.1 / error, 3)).epsilon(1e-6));
  CHECK(*d->p_holm == *d->difference.p);  // the only other row of its column
  CHECK(d->is_significant());
  CHECK_FALSE(paired.of(1, t.row(1))->is_significant());
}

TEST_CASE("p is corrected over the runs of a column") {
  TwoRuns t;
  RunRecord c = t.b;
  t.runs.push_back({"c", "c", &c, std::nullopt, 0});
  const PairedPerplexities paired = t.paired();
  CHECK(*paired.of(1, t.row(0))->p_holm == 2 * *paired.of(1, t.row(0))->difference.p);
  CHECK(*paired.of(2, t.row(0))->p_holm == *paired.of(1, t.row(0))->p_holm);
}

TEST_CASE("runs without the same targets have no difference, and a note says why") {
  TwoRuns t;
  SECTION("an older file") {
    for (LengthPerplexity& row : t.b.perplexity->windows) row.targets = "", row.clusters = {};
    const PairedPerplexities paired = t.paired();
    CHECK(paired.empty());
    CHECK(paired.notes() == std::vector<std::string>{
                                "No paired difference from a & b: better (no sums by document, as "
                                "in older files: evaluate again)."});
  }
  SECTION("the first one's file is older") {
    for (LengthPerplexity& row : t.a.perplexity->windows) row.targets = "", row.clusters = {};
    CHECK(t.paired().notes()[0].find("a & b (no sums by document") != std::string::npos);
  }
  SECTION("other targets") {
    for (LengthPerplexity& row : t.b.perplexity->windows) row.targets = "u";
    CHECK(t.paired().notes() ==
          std::vector<std::string>{"No paired difference from a & b: better (other targets)."});
  }
  SECTION("other data") {
    t.b.perplexity->data_fingerprint = "g";
    CHECK(t.paired().empty());
  }
}

TEST_CASE("lengths of one run differ from its training length") {
  RunRecord run;
  const Runs runs = {{"run", "a", &run, std::nullopt, 0}};
  const auto paired = [&] { return PairedPerplexities(runs, &PerplexityResult::windows); };
  run.perplexity = result_of(
      {row_of(32, kBetter), row_of(64, kBase), row_of(128, kEqual), row_of(256, kBase, "u")});
  const PairedPerplexities all = paired();
  CHECK(all.baseline() == "length 64");
  CHECK(all.of(0, run.perplexity->windows[0])->difference.value ==
        Approx(std::exp(2.4) - std::exp(2.5)));
  CHECK(all.of(0, run.perplexity->windows[0])->is_significant());
  CHECK(all.of(0, run.perplexity->windows[1]) == nullptr);
  CHECK(all.of(0, run.perplexity->windows[2]));
  CHECK(all.of(0, run.perplexity->windows[3]) == nullptr);
  CHECK(all.notes()[0].find("score other targets than length 64") != std::string::npos);
  run.perplexity = result_of({row_of(32, kBase), row_of(256, kEqual)});
  CHECK(paired().empty());
  CHECK(paired().notes()[0].find("the training length, 64, is not among them") !=
        std::string::npos);
  run.perplexity = result_of({row_of(256, kEqual)});
  CHECK(paired().notes().empty());
}

TEST_CASE("a page has differences below perplexities, and bold ones where p says so") {
  const TwoRuns t;
  const std::string html = report_html(t.runs, {});
  const Xml body = body_of(html);
  const auto cells = body.all("table")[1]->all("td");
  REQUIRE(cells.size() == 4);
  CHECK(cells[0]->all("b").empty());
  REQUIRE(cells[2]->all("b").size() == 1);
  CHECK(cells[2]->all("b")[0]->text.starts_with("11.02\u00a0\u00b1\u00a0"));
  CHECK(cells[2]->text.starts_with("-1.16\u00a0\u00b1\u00a0"));
  CHECK(cells[3]->all("b").empty());
  CHECK(html.find("the difference from a &amp; b on the same targets") != std::string::npos);
  CHECK(html.find("p &lt; 0.05") != std::string::npos);
  // Bars in the chart: of the second run's two points. The values' own errors are in its data.
  CHECK(body.all("figure")[0]->of_class("line", "error").size() == 2);
  for (const Xml* line : body.all("figure")[0]->all("polyline")) {
    const std::string& values = line->at("data-values");
    CHECK(std::count(values.begin(), values.end(), ',') == 4);  // x, y and an error, twice
  }
}

TEST_CASE("a figure says what its bars show") {
  TwoRuns t;
  const auto text = [&] {
    const Xml svg = parse_xml(figure_svg(chart_of(t.runs, "perplexity")));
    std::string out;
    for (const Xml* each : svg.all("text")) {
      if (each->text.starts_with("bars: ")) out += each->text;
    }
    return out;
  };
  const std::string of_values = "bars: \u00b1 standard error over the evaluation text";
  CHECK(text() == "bars: \u00b1 standard error of the difference from a & b");
  for (LengthPerplexity& row : t.b.perplexity->windows) row.targets = "u";
  CHECK(text() == of_values);
  for (LengthPerplexity& row : t.b.perplexity->windows) row.targets = "t";
  // With several seeds of the first run, differences from one of them are not drawn.
  RunRecord second = t.a;
  t.runs.push_back({"a & b 2", "c", &second, std::nullopt, 0, {}, "recipe", 2});
  t.runs[0].recipe = "recipe";
  t.runs[0].seed = 1;
  CHECK(text() == of_values);
}

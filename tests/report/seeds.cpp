#include "report/seeds.h"

#include <cmath>

#include "catch.h"

using namespace bamtrain;

namespace {

struct Case {
  std::vector<RunRecord> records;
  Runs runs;

  explicit Case(const std::vector<std::string>& names) : records(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) {
      runs.push_back({names[i],
                      names[i],
                      &records[i],
                      std::nullopt,
                      0,
                      {},
                      "recipe",
                      static_cast<int64_t>(i)});
    }
  }
  std::string name() const {
    const std::vector<SeedGroup> groups = seed_groups(runs);
    REQUIRE(groups.size() == 1);
    return groups[0].name;
  }
};

Series seed_line(const std::string& name, int run, const std::vector<Point>& points) {
  return {name, run, true, true, 1, points, {}};
}

}  // namespace

TEST_CASE("runs of one recipe and different seeds are together") {
  Case c({"a-1", "b", "a-2", "c", "a-3", "d"});
  c.runs[1].recipe = "other";
  c.runs[3].recipe = "";  // unknown
  c.runs[5].seed = 2;     // a second run with that seed
  const std::vector<SeedGroup> groups = seed_groups(c.runs);
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].runs == std::vector<size_t>{0, 2, 4});
  CHECK(groups[0].name == "a");
  CHECK(groups[1].runs == std::vector<size_t>{1});
  CHECK(groups[2].runs == std::vector<size_t>{3});
  CHECK(groups[3].runs == std::vector<size_t>{5});
  CHECK(groups[3].name == "d");
}

TEST_CASE("runs that were evaluated otherwise are apart") {
  Case c({"a-1", "a-2"});
  const PerplexityResult result = {8, 64, 32, "f", {{64, 50}}, {}, {}};
  c.records[0].perplexity = result;
  CHECK(seed_groups(c.runs).size() == 1);  // the other one was not evaluated
  c.records[1].perplexity = result;
  CHECK(seed_groups(c.runs).size() == 1);
  c.records[1].perplexity->step = 4;
  CHECK(seed_groups(c.runs).size() == 2);
  c.records[1].perplexity = result;
  c.records[1].perplexity->data_fingerprint = "g";
  CHECK(seed_groups(c.runs).size() == 2);
  c.records[1].perplexity = result;
  c.records[1].perplexity->last_tokens = 16;
  CHECK(seed_groups(c.runs).size() == 2);
}

TEST_CASE("a group is called by what its names have in common") {
  CHECK(Case({"bam-seed1", "bam-seed2"}).name() == "bam");
  CHECK(Case({"bam, seed 2", "bam, seed 3"}).name() == "bam");
  CHECK(Case({"bam, seed 2", "bam"}).name() == "bam");
  CHECK(Case({"bam", "bam2"}).name() == "bam");
  CHECK(Case({"bam1", "bam2"}).name() == "bam");
  CHECK(Case({"bam-s12", "bam-s13"}).name() == "bam");
  CHECK(Case({"rope base", "rope bare"}).name() == "rope");
  CHECK(Case({"s1/bam", "s2/bam"}).name() == "bam");
  CHECK(Case({"1/many/bam", "2/many/bam"}).name() == "many/bam");
  CHECK(Case({"x", "y"}).name() == "x");
  CHECK(Case({"bam + ssmax"}).name() == "bam + ssmax");

  Case two({"out-1", "out-2", "out-3", "out-4"});
  two.runs[2].recipe = two.runs[3].recipe = "other";
  const std::vector<SeedGroup> groups = seed_groups(two.runs);
  REQUIRE(groups.size() == 2);  // "out" would be the name of both
  CHECK(groups[0].name == "out-1");
  CHECK(groups[1].name == "out-3");
}

TEST_CASE("a line of seeds is their mean, its spread their deviation over n - 1") {
  Case c({"bam-1", "rope", "bam-2", "bam-3"});
  c.runs[1].recipe = "other";
  Chart chart;
  chart.title = "t";
  chart.series = {seed_line("bam-1", 0, {{1, 2}, {2, 10}, {3, 5}}), seed_line("rope", 1, {{1, 7}}),
                  seed_line("bam-2", 2, {{1, 4}, {2, 10}, {3, 6}, {4, 1}}),
                  seed_line("bam-3", 3, {{1, 9}, {2, 13}})};
  chart.series[1].errors = {0.5};
  const Chart of = with_seeds(chart, c.runs, seed_groups(c.runs));
  CHECK(of.title == "t");
  REQUIRE(of.series.size() == 2);
  const Series& bam = of.series[0];
  CHECK(bam.name == "bam (3 seeds)");
  CHECK(bam.style == 0);
  REQUIRE(bam.points.size() == 2);  // where all runs have a value
  // 2, 4, 9: mean 5, squares (9 + 1 + 16) / 2. 10, 10, 13: mean 11, squares (1 + 1 + 4) / 2.
  CHECK(bam.points[0].x == 1);
  CHECK(bam.points[0].y == Approx(5));
  CHECK(bam.spread[0].low == Approx(5 - std::sqrt(13.0)));
  CHECK(bam.spread[0].high == Approx(5 + std::sqrt(13.0)));
  CHECK(bam.points[1].y == Approx(11));
  CHECK(bam.spread[1].high == Approx(11 + std::sqrt(3.0)));
  const Series& rope = of.series[1];
  CHECK(rope.name == "rope");
  CHECK(rope.style == 1);
  CHECK(rope.errors == std::vector<double>{0.5});
  CHECK(rope.spread.empty());
}

TEST_CASE("of perplexities the mean is of the losses") {
  Case c({"bam-1", "bam-2"});
  Chart chart;
  chart.of_losses = true;
  chart.series = {seed_line("bam-1", 0, {{1, 10}}), seed_line("bam-2", 1, {{1, 40}})};
  const Chart of = with_seeds(chart, c.runs, seed_groups(c.runs));
  REQUIRE(of.series.size() == 1);
  // Losses ln 20 +- ln 2, whose standard deviation with n - 1 is sqrt(2) ln 2.
  CHECK(of.series[0].points[0].y == Approx(20));
  CHECK(of.series[0].spread[0].low == Approx(20 / std::pow(2, std::sqrt(2.0))));
  CHECK(of.series[0].spread[0].high == Approx(20 * std::pow(2, std::sqrt(2.0))));
}

TEST_CASE("what a run has several of is joined each with its like") {
  Case c({"bam-1", "bam-2"});
  Chart chart;
  chart.series = {seed_line("bam-1, logged", 0, {{1, 1}}), seed_line("bam-2, logged", 1, {{1, 3}}),
                  seed_line("bam-1", 0, {{1, 5}}), seed_line("bam-2", 1, {{1, 7}})};
  chart.series[0].strength = chart.series[1].strength = 0.3;
  Chart of = with_seeds(chart, c.runs, seed_groups(c.runs));
  REQUIRE(of.series.size() == 2);
  CHECK(of.series[0].name == "bam (2 seeds), logged");
  CHECK(of.series[0].points[0].y == 2);
  CHECK(of.series[0].spread.empty());
  CHECK(of.series[1].name == "bam (2 seeds)");
  CHECK(of.series[1].points[0].y == 6);
  CHECK(of.series[1].spread.size() == 1);

  chart.x_measured = true;  // each at its own value
  of = with_seeds(chart, c.runs, seed_groups(c.runs));
  REQUIRE(of.series.size() == 4);
  for (const Series& s : of.series) {
    CHECK(s.style == 0);
    CHECK(s.spread.empty());
    CHECK(s.points.size() == 1);
  }
  CHECK(of.series[3].name == "bam (2 seeds)");

  chart.x_measured = false;
  for (Series& s : chart.series) s.line = false;
  CHECK(with_seeds(chart, c.runs, seed_groups(c.runs)).series.size() == 4);
}

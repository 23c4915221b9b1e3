#include "report/headline.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <limits>

#include "catch.h"

using namespace bamtrain;

namespace {

/// Records with the same address for as long as the runs are read.
struct Fixture {
  std::deque<RunRecord> records;
  Runs runs;

  RunRecord& add(const std::string& name, const std::string& recipe = "", int64_t seed = 0) {
    records.emplace_back();
    runs.push_back({name, name, &records.back(), std::nullopt, 0, {}, recipe, seed});
    return records.back();
  }
  /// A run trained at 64, with these perplexities of windows at 64, 128, ...
  void add_windows(const std::string& name, const std::vector<double>& perplexities,
                   const std::string& recipe = "", int64_t seed = 0) {
    PerplexityResult result;
    result.training_length = 64;
    for (size_t i = 0; i < perplexities.size(); ++i) {
      result.windows.push_back({int64_t{64} << i, perplexities[i]});
    }
    add(name, recipe, seed).perplexity = result;
  }
};

MetricsLine line(int64_t step, double loss, double validation = NAN) {
  return {step, 100.0 * static_cast<double>(step), loss, 1e-3, 2, 500, validation, NAN, NAN};
}

}  // namespace

TEST_CASE("a headline is the change of perplexity up to the longest length, in multiples") {
  Fixture f;
  f.add_windows("rope", {50, 60, 70, 72, 77.5});
  f.add_windows("bam", {40, 40, 40, 40, 41.24});
  CHECK(headline(f.runs) == "rope: +55\u00a0% at 16x; bam: +3.1\u00a0%");
  f.add_windows("short", {100, 99.6});
  f.add_windows("far", {10, 133.4});
  f.add_windows("flat", {10, 9.998});
  CHECK(headline(f.runs) ==
        "rope: +55\u00a0% at 16x; bam: +3.1\u00a0%; short: -0.4\u00a0% at 2x; far: +1,234\u00a0%; "
        "flat: 0.0\u00a0%");
  CHECK(headline_note(f.runs) ==
        "Perplexity at the longest measured length, relative to that at the training length of 64, "
        "over all positions of each window.");
}

TEST_CASE("a headline is of the last tokens, unless an evaluated run lacks them") {
  Fixture f;
  f.add_windows("a", {50, 55});
  f.add_windows("b", {50, 60});
  f.records[0].perplexity->last = {{64, 50}, {128, 100}};
  f.records[0].perplexity->last_tokens = f.records[1].perplexity->last_tokens = 32;
  CHECK(headline(f.runs) == "a: +10\u00a0% at 2x; b: +20\u00a0%");
  f.records[1].perplexity->last = {{64, 50}, {160, 25}};
  CHECK(headline(f.runs) == "a: +100\u00a0% at 2x; b: -50\u00a0% at 2.5x");
  CHECK(headline_note(f.runs).ends_with(", over each window's last 32 tokens."));
}

TEST_CASE("a headline has the mean of seeds, at lengths that all of them have") {
  Fixture f;
  f.add_windows("bam-1", {50, 60, 90}, "r", 1);
  f.add_windows("bam-2", {40, 75}, "r", 2);
  // sqrt((60 / 50) (75 / 40)) = 1.5
  CHECK(headline(f.runs) == "bam (2 seeds): +50\u00a0% at 2x");
  CHECK(headline_note(f.runs).ends_with(" Seeds: means of losses."));
}

TEST_CASE("a headline of runs without such lengths is their last loss") {
  Fixture f;
  f.add_windows("rope", {50, 60});
  f.add_windows("at one length", {50});
  RunRecord& validated = f.add("validated");
  for (const MetricsLine& m : {line(1, 8, 7), line(2000, 5, 4.5), line(2001, 4)}) {
    validated.metrics.add(m);
  }
  f.add("logged").metrics.add(line(3, 6.25));
  CHECK(headline(f.runs) ==
        "rope: +20\u00a0% at 2x; at one length: no step logged yet; validated: validation loss "
        "4.5000 at "
        "step 2,000; logged: loss 6.2500 at step 3");
  Fixture none;
  none.add("logged").metrics.add(line(3, 6.25));
  CHECK(headline(none.runs) == "logged: loss 6.2500 at step 3");
  CHECK(headline_note(none.runs).empty());
}

TEST_CASE("losses of seeds have a mean at one step only") {
  Fixture f;
  f.add("a-1", "r", 1).metrics.add(line(2, 8, 7));
  f.add("a-2", "r", 2).metrics.add(line(2, 8, 5));
  CHECK(headline(f.runs) == "a (2 seeds): validation loss 6.0000 at step 2");
  f.records[1].metrics.add(line(3, 8, 5));
  CHECK(headline(f.runs) ==
        "a-1: validation loss 7.0000 at step 2; a-2: validation loss 5.0000 at step 3");
}

TEST_CASE("a headline of many runs names the lowest and the highest") {
  Fixture f;
  for (size_t i = 0; i <= kMostNamed; ++i) {
    f.add_windows(fmt::format("r{}", i), {100, 120 + static_cast<double>((i + 4) % 9)});
  }
  CHECK(headline(f.runs) == "lowest and highest of 9: r5: +20\u00a0% at 2x; r4: +28\u00a0%");
  Fixture one;
  one.add_windows("measured", {100, 120});
  for (size_t i = 0; i < kMostNamed; ++i) one.add(fmt::format("r{}", i));
  CHECK(headline(one.runs) == "9 runs; measured: +20\u00a0% at 2x");
}

TEST_CASE("a perplexity without a number has no change") {
  Fixture f;
  f.add_windows("a", {50, NAN});
  f.add_windows("b", {50, std::numeric_limits<double>::infinity()});
  f.add_windows("c", {NAN, 50});
  CHECK(headline(f.runs) == "a: not finite at 2x; b: not finite; c: no step logged yet");
}

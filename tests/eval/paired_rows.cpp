// What pairs the rows of a result. The losses of single tokens come from a second model, one window
// at a time; the differences are worked out for the fixture's two documents.

#include "eval/paired_rows.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "catch.h"
#include "core/student_t.h"
#include "eval/perplexity_fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> out;
  for (double x = 0; in >> x;) out.push_back(x);
  return out;
}

/// The losses of the targets in the first document (0) and the third (60 and 92), in windows of
/// this length; the training length is 8.
std::pair<std::vector<double>, std::vector<double>> losses_at(PerplexityFixture& f,
                                                              int64_t length) {
  std::vector<double> first, third;
  for (int64_t stretch : {0, 60, 92}) {
    for (int64_t begin = 0; begin < 32; begin += length) {
      for (double x : f.losses(stretch + begin, length)) {
        (stretch == 0 ? first : third).push_back(x);
      }
    }
  }
  return {first, third};
}

double sum_of(const std::vector<double>& x) { return mean(x) * static_cast<double>(x.size()); }

}  // namespace

TEST_CASE("sums are those of each document's losses, and counts theirs") {
  PerplexityFixture f;
  const auto result = f.evaluate(request());
  for (const auto& row : result["windows"]) {
    const auto [first, third] = losses_at(f, row["length"]);
    const std::vector<double> sums = numbers(row["sums"]);
    REQUIRE(sums.size() == 2);
    CHECK(sums[0] == Approx(sum_of(first)).epsilon(1e-12));
    CHECK(sums[1] == Approx(sum_of(third)).epsilon(1e-12));
    CHECK(result["target_counts"][row["targets"].get<std::string>()] == "32 64");
    CHECK((sums[0] + sums[1]) / 96 == row["loss"].get<double>());  // exact, not rounded
  }
  // All targets at every length, and in the only bin; the last ones are others.
  CHECK(result["windows"][0]["targets"] == result["windows"][1]["targets"]);
  CHECK(result["windows"][0]["targets"] == result["bins"][0]["targets"]);
  CHECK(result["last"][0]["targets"] == result["last"][1]["targets"]);
  CHECK(result["last"][0]["targets"] != result["windows"][0]["targets"]);
  CHECK(result["target_counts"].size() == 2);
}

TEST_CASE("a length differs from the training length by the losses of the same targets") {
  PerplexityFixture f;
  const auto result = f.evaluate(request());
  CHECK_FALSE(result["windows"][0].contains("difference"));  // 8, the training length
  CHECK_FALSE(result["bins"][0].contains("difference"));
  const auto [first8, third8] = losses_at(f, 8);
  const auto [first, third] = losses_at(f, 32);
  const double d1 = mean(first) - mean(first8), d3 = mean(third) - mean(third8);
  const double loss = (32 * d1 + 64 * d3) / 96;
  const double error = 2 * 32 * 64 * std::abs(d1 - d3) / (96.0 * 96.0);  // of two clusters
  const auto& d = result["windows"][1]["difference"];
  CHECK(d["from_length"] == 8);
  CHECK(d["loss"].get<double>() == Approx(loss).epsilon(1e-9));
  CHECK(d["loss_error"].get<double>() == Approx(error).epsilon(1e-7));
  const auto perplexity = [&](size_t n) {
    return result["windows"][n]["perplexity"].get<double>();
  };
  CHECK(d["perplexity"].get<double>() == Approx(perplexity(1) - perplexity(0)).epsilon(1e-9));
  // The same, of exp(a) A - exp(b) B.
  const double e1 = perplexity(1) * mean(first) - perplexity(0) * mean(first8);
  const double e3 = perplexity(1) * mean(third) - perplexity(0) * mean(third8);
  CHECK(d["perplexity_error"].get<double>() ==
        Approx(2 * 32 * 64 * std::abs(e1 - e3) / (96.0 * 96.0)).epsilon(1e-7));
  // One degree of freedom: a Cauchy distribution.
  const double p = 1 - 2 / std::acos(-1) * std::atan(std::abs(loss / error));
  CHECK(d["p"].get<double>() == Approx(p).epsilon(1e-6));
  CHECK(d["p_holm"] == d["p"]);  // the only difference
  CHECK(result["last"][1]["difference"]["from_length"] == 8);
}

TEST_CASE("p is corrected for all lengths but the training length") {
  PerplexityFixture f({40, 20, 70, 50, 60});
  PerplexityRequest r = request();
  r.lengths = {4, 8, 16, 32};
  r.protocols = {"windows"};
  const auto result = f.evaluate(r);
  std::vector<double> p, corrected;
  for (const size_t n : {0, 2, 3}) {
    const auto& d = result["windows"][n]["difference"];
    p.push_back(d["p"]);
    corrected.push_back(d["p_holm"]);
  }
  // Step-down: the smallest times 3, the next one times 2.
  const auto least = static_cast<size_t>(std::min_element(p.begin(), p.end()) - p.begin());
  CHECK(corrected[least] == std::min(1.0, 3 * p[least]));
  for (size_t i = 0; i < 3; ++i) CHECK(corrected[i] >= p[i]);
}

TEST_CASE("lengths that score other targets have no difference") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  SECTION("beginnings") {
    r.text = PerplexityText::beginnings;
    const auto result = f.evaluate(r);
    CHECK(result["windows"][0]["targets"] != result["windows"][1]["targets"]);
    CHECK_FALSE(result["windows"][1].contains("difference"));
  }
  SECTION("packed text, of which more targets fit shorter windows") {
    r.text = PerplexityText::packed;  // 130 tokens: 16 windows of 8, 4 of 32
    CHECK(f.evaluate(r)["windows"][1].contains("difference"));
    r.lengths = {8, 48};  // 16 windows of 8, 2 of 48
    CHECK_FALSE(f.evaluate(r)["windows"][1].contains("difference"));
  }
  SECTION("short documents") {
    r.text = PerplexityText::short_documents;
    r.lengths = {30, 80};
    const auto result = f.evaluate(r);
    CHECK(result["short"][0]["targets"] != result["short"][1]["targets"]);
    CHECK_FALSE(result["short"][1].contains("difference"));
  }
  SECTION("the training length is not among them") {
    r.lengths = {16, 32};
    CHECK_FALSE(f.evaluate(r)["windows"][1].contains("difference"));
  }
}

TEST_CASE("another model has the same targets, another request others") {
  PerplexityFixture f, g;
  const PerplexityRequest r = request();
  const auto a = f.evaluate(r);
  for (int64_t i = 0; i < g.layout.elements(); ++i) g.master_weights.ptr<double>()[i] *= 0.5;
  const auto b = g.evaluate(r);
  for (const char* protocol : {"windows", "last", "bins"}) {
    for (size_t n = 0; n < a[protocol].size(); ++n) {
      CHECK(a[protocol][n]["targets"] == b[protocol][n]["targets"]);
      CHECK(a[protocol][n]["sums"] != b[protocol][n]["sums"]);
    }
  }
  CHECK(a["target_counts"] == b["target_counts"]);
  PerplexityRequest fewer = r;
  fewer.counts = {1};
  CHECK(f.evaluate(fewer)["windows"][0]["targets"] != a["windows"][0]["targets"]);
}

TEST_CASE("losses that are not finite, and very many documents, leave no sums") {
  ordered_json result = {{"windows", {{{"length", 8}}, {{"length", 16}}, {{"length", 32}}}}};
  PairedRows rows;
  rows.add("windows", 0, "t", {{1, 1}, {0, 0}, {2, 1}});
  rows.add("windows", 1, "t", {{std::numeric_limits<double>::infinity(), 1}, {0, 0}, {2, 1}});
  rows.add("windows", 2, "t", {{2, 1}, {0, 0}, {4, 1}});
  ordered_json written = result;
  rows.write(8, &written);
  CHECK(written["windows"][0]["sums"] == "1 2");
  CHECK_FALSE(written["windows"][1].contains("sums"));
  CHECK(written["windows"][2]["sums"] == "2 4");
  CHECK(written["target_counts"] == ordered_json{{"t", "1 1"}});
  CHECK(written["windows"][2]["difference"]["loss"] == 1.5);
  PairedRows many;
  many.add("windows", 0, "t", std::vector<Cluster>(PairedRows::kMostSums / 2, {1, 1}));
  many.add("windows", 1, "t", std::vector<Cluster>(PairedRows::kMostSums / 2 + 1, {1, 1}));
  written = result;
  many.write(1, &written);
  CHECK(written == result);
}

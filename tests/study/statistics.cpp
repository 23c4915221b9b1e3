// Welch's test, compared with scipy's values (scripts/golden/statistics.py).

#include "study/statistics.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/statistics_golden.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

SeedSample sample(const nlohmann::json& values) {
  return sample_of(values.get<std::vector<double>>());
}

}  // namespace

TEST_CASE("Welch's p is scipy's") {
  // Rounding of exp, log and lgamma, and of the variances.
  for (const auto& row : statistics_golden()["welch"]) {
    INFO(row.dump());
    const auto p = welch_p(sample(row["a"]), sample(row["b"]));
    REQUIRE(p);
    CHECK(*p == Approx(row["p"].get<double>()).epsilon(1e-11));
    CHECK(*welch_p(sample(row["b"]), sample(row["a"])) == *p);
  }
}

TEST_CASE("what has no spread has no p") {
  const double one[] = {1}, equal[] = {2, 2, 2}, other[] = {3, 3}, some[] = {1, 2};
  CHECK_FALSE(sample_of(one).standard_deviation);
  CHECK(*sample_of(equal).standard_deviation == 0);
  CHECK_FALSE(welch_p(sample_of(one), sample_of(some)));
  CHECK_FALSE(welch_p(sample_of(equal), sample_of(other)));
  CHECK(welch_p(sample_of(equal), sample_of(some)));
  CHECK(*sample_of(some).standard_deviation == Approx(std::sqrt(0.5)));
  CHECK(sample_of(some).mean == 1.5);
}

// The sum of such values, divided again, may differ by a rounding.
TEST_CASE("equal values have no spread, whatever their sum is rounded to") {
  for (const int count : {2, 3, 6, 7}) {
    for (int n = 0; n <= 1000; ++n) {
      const std::vector<double> values(static_cast<size_t>(count), n / 1000.0);
      INFO(count << " times " << values[0]);
      REQUIRE(*sample_of(values).standard_deviation == 0);
      REQUIRE(sample_of(values).mean == values[0]);
    }
  }
}

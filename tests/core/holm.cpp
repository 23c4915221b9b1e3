// Holm's method, compared with closed testing (scripts/golden/statistics.py) and by hand.

#include "core/holm.h"

#include "catch.h"
#include "core/statistics_golden.h"

using namespace bamtrain;
using namespace bamtrain::testing;

using Optionals = std::vector<std::optional<double>>;

TEST_CASE("corrected p-values are those of closed testing") {
  for (const auto& row : statistics_golden()["holm"]) {
    INFO(row.dump());
    const auto p = row["p"].get<std::vector<double>>();
    const Optionals corrected = holm(Optionals(p.begin(), p.end()));
    REQUIRE(corrected.size() == p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      CHECK(*corrected[i] == Approx(row["corrected"][i].get<double>()).epsilon(1e-15));
    }
  }
}

TEST_CASE("what has no p does not count in the family") {
  CHECK(holm(Optionals{}).empty());
  const Optionals corrected = holm(Optionals{std::nullopt, 0.03, std::nullopt, 0.01});
  CHECK_FALSE(corrected[0]);
  CHECK(*corrected[1] == 0.03);
  CHECK_FALSE(corrected[2]);
  CHECK(*corrected[3] == 0.02);
}

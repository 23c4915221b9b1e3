// Student's tails, against scipy's values and closed forms.

#include "core/student_t.h"

#include <cmath>
#include <numbers>

#include "catch.h"
#include "core/statistics_golden.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("Student's tails are scipy's") {
  for (const auto& row : statistics_golden()["student"]) {
    INFO(row.dump());
    CHECK(student_two_sided(row[0], row[1]) == Approx(row[2].get<double>()).epsilon(1e-11));
  }
}

TEST_CASE("one and two degrees of freedom have closed forms") {
  for (const double t : {0.0, 1e-3, 0.5, 1.0, 3.0, 40.0, -3.0}) {
    INFO(t);
    const double one = 1 - 2 / std::numbers::pi * std::atan(std::abs(t));
    CHECK(student_two_sided(t, 1) == Approx(one).epsilon(1e-11));
    CHECK(student_two_sided(t, 2) == Approx(1 - std::abs(t) / std::sqrt(2 + t * t)).epsilon(1e-11));
  }
}

// The critical values of every textbook, with three decimals: p changes by less than 5e-5.
TEST_CASE("the tabulated 5 % points") {
  for (const auto& [freedom, t] :
       {std::pair(1.0, 12.706), {4.0, 2.776}, {10.0, 2.228}, {30.0, 2.042}}) {
    CHECK(student_two_sided(t, freedom) == Approx(0.05).margin(5e-5));
  }
}

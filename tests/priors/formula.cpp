// Every formula of a number per token, compared with its finite differences in fp64.

#include "priors/formula.h"

#include <algorithm>
#include <cmath>

#include "catch.h"

namespace bamtrain {
namespace {

struct Fp64 {
  static double log1p(double a, double b) { return std::log1p(a * b); }
  static double divide(double a, double b) { return a / b; }
};

template <class Of>
void check_distance(double row, double key, double d) {
  INFO("row " << row << ", key " << key << ", distance " << d);
  const auto bias = [d](double of_row, double of_key) {
    return Of::template bias<Fp64>(of_row, of_key, d);
  };
  const double e = 1e-6, b = bias(row, key);
  if (row == key) {
    // There may be a kink where a token sees itself: any slope between those of both sides is
    // right.
    const auto between = [&](double slope, double above, double below) {
      const double margin = 1e-5 * (1 + std::abs(b));
      CHECK(slope >= std::min(above - b, b - below) / e - margin);
      CHECK(slope <= std::max(above - b, b - below) / e + margin);
    };
    between(Of::template of_row<Fp64>(row, key, d), bias(row + e, key), bias(row - e, key));
    between(Of::template of_key<Fp64>(row, key, d), bias(row, key + e), bias(row, key - e));
    CHECK(Of::template of_row<Fp64>(row, key, d) == -Of::template of_key<Fp64>(row, key, d));
    return;
  }
  const auto near = [b](double x) { return Approx(x).margin(1e-8 * (1 + std::abs(b))); };
  CHECK(Of::template of_row<Fp64>(row, key, d) ==
        near((bias(row + e, key) - bias(row - e, key)) / (2 * e)));
  CHECK(Of::template of_key<Fp64>(row, key, d) ==
        near((bias(row, key + e) - bias(row, key - e)) / (2 * e)));
  if (Of::kRelative) CHECK(bias(row + 64, key + 64) == Approx(b));
  if constexpr (requires { Of::template exponential<Fp64>(row, key, d); }) {
    CHECK(Of::template exponential<Fp64>(row, key, d) == Approx(std::exp(b)));
    CHECK(Of::template exponential<Fp64>(row, key, d) <= 1);
  }
}

template <class Of>
void check_formula(int form) {
  INFO("form " << form << " of Formulas");
  for (double row : {0.0, 0.75, 6.0}) {
    for (double rise : {0.0, -0.25, -5.0, 0.5, 4.0}) {
      for (double d : {0.0, 1.0, 100.0}) check_distance<Of>(row, row + rise, d);
    }
  }
}

TEST_CASE("formulas of numbers of tokens have the derivatives that they say") {
  int form = 0;
  [&form]<class... Of>(TypeList<Of...>) { (check_formula<Of>(form++), ...); }(Formulas());
}

}  // namespace
}  // namespace bamtrain

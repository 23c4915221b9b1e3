// Fits recover the parameters from which data was generated.

#include "inspect/scale_fit.h"

#include <cmath>

#include "catch.h"

namespace bamtrain {
namespace {

std::vector<int64_t> counted(int64_t n) {
  std::vector<int64_t> keys;
  for (int64_t i = 1; i <= n; ++i) keys.push_back(i);
  return keys;
}

template <class F>
std::vector<double> made(const std::vector<int64_t>& keys, F&& f) {
  std::vector<double> t;
  for (const int64_t n : keys) t.push_back(f(static_cast<double>(n)));
  return t;
}

TEST_CASE("the power form finds delta, beta and gamma that made its data") {
  const std::vector<int64_t> keys = counted(500);
  for (const double gamma : {0.5, 1.0, 2.3, -0.7, 3.9}) {
    // For one key, the power is 0 or infinite, so the fit ignores that value.
    const std::vector<double> t = made(
        keys, [gamma](double n) { return n < 2 ? 1e9 : 0.4 + 1.7 * std::pow(std::log(n), gamma); });
    const std::optional<ScaleFits> fit = fit_scale(keys, t);
    INFO("gamma " << gamma);
    REQUIRE(fit);
    CHECK(fit->power.gamma == Approx(gamma).epsilon(1e-5));
    CHECK(fit->power.beta == Approx(1.7).epsilon(1e-4));
    CHECK(fit->power.delta == Approx(0.4).margin(1e-3));
    CHECK(fit->power.r2 == Approx(1).epsilon(1e-9));
    CHECK(fit->power.power(100) == Approx(0.4 + 1.7 * std::pow(std::log(100.0), gamma)));
    if (gamma != 1) CHECK(fit->log.r2 < 0.9999);
    CHECK(fit->power.r2 >= fit->log.r2 - 1e-12);
  }
}

TEST_CASE("the linear and log forms find their own data") {
  const std::vector<int64_t> keys = counted(64);
  const auto line = fit_scale(keys, made(keys, [](double n) { return 2 - 0.03 * n; }));
  REQUIRE(line);
  CHECK(line->linear.delta == Approx(2));
  CHECK(line->linear.beta == Approx(-0.03));
  CHECK(line->linear.r2 == Approx(1));
  CHECK(line->log.r2 < 0.95);
  const auto log = fit_scale(keys, made(keys, [](double n) { return 0.5 * std::log(n); }));
  REQUIRE(log);
  CHECK(log->log.beta == Approx(0.5));
  CHECK(log->log.delta == Approx(0).margin(1e-12));
  CHECK(log->log.r2 == Approx(1));
}

TEST_CASE("R2 is that of four points worked out by hand") {
  // x 2 3 4 5, y 1 3 2 4: slope 0.8, intercept -0.3, residuals 1.8 of 5.
  const auto fit = fit_scale({2, 3, 4, 5}, {1, 3, 2, 4});
  REQUIRE(fit);
  CHECK(fit->linear.beta == Approx(0.8));
  CHECK(fit->linear.delta == Approx(-0.3));
  CHECK(fit->linear.r2 == Approx(1 - 1.8 / 5));
}

TEST_CASE("there is no fit of few lengths, of one value and of what is not finite") {
  CHECK_FALSE(fit_scale({1, 2, 3, 4, 4, 4}, {1, 2, 3, 4, 5, 6}));
  CHECK_FALSE(fit_scale(counted(50), std::vector<double>(50, 1.5)));
  std::vector<double> t(50, 1.0);
  t[20] = INFINITY;
  CHECK_FALSE(fit_scale(counted(50), t));
  CHECK_FALSE(fit_scale({}, {}));
}

}  // namespace
}  // namespace bamtrain

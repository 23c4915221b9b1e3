#include "report/axis.h"

#include <cmath>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("a value's share of an axis is linear in it, or in its logarithm") {
  const Axis linear = {Spacing::linear, -2, 6};
  CHECK(linear.share(-2) == 0);
  CHECK(linear.share(6) == 1);
  CHECK(linear.share(0) == 0.25);
  const Axis decades = {Spacing::logarithmic, 0.1, 1000};
  CHECK(decades.share(0.1) == 0);
  CHECK(decades.share(1000) == 1);
  CHECK(decades.share(1) == Approx(0.25).epsilon(1e-14));
}

TEST_CASE("an axis holds its values with a twenty-fifth to spare") {
  const Axis linear = axis_over(Spacing::linear, {3, 1, NAN, 2, INFINITY});
  CHECK(linear.low == Approx(1 - 0.08));
  CHECK(linear.high == Approx(3 + 0.08));
  const Axis decades = axis_over(Spacing::logarithmic, {1, 100});
  CHECK(decades.low == Approx(std::pow(10, -0.08)));
  CHECK(decades.high == Approx(std::pow(10, 2.08)));
  // Values without a logarithm get a linear axis.
  CHECK(axis_over(Spacing::logarithmic, {0, 100}).spacing == Spacing::linear);
  // One value, or none, still gives a range.
  for (const Spacing s : {Spacing::linear, Spacing::logarithmic}) {
    for (const double v : {-7.0, 0.0, 1e-30, 7.0, 1e30}) {
      const Axis one = axis_over(s, {v});
      CHECK(one.low < v);
      CHECK(v < one.high);
    }
    const Axis none = axis_over(s, {});
    CHECK(none.low < none.high);
  }
}

TEST_CASE("values that hardly differ, and the smallest and largest numbers, have axes with ticks") {
  using V = std::vector<double>;
  for (const Spacing s : {Spacing::linear, Spacing::logarithmic}) {
    for (const V& values :
         {V{80.21, std::nextafter(80.21, 100)}, V{5, 5.000000000000001}, V{5, 5 + 1e-10},
          V{-80.21, std::nextafter(-80.21, 0)}, V{1e15, 1e15 + 1}, V{1e17, 1e17 + 16}, V{5e-324},
          V{0, 5e-324}, V{5e-324, 1}, V{1e-300, 1e300}, V{1e-149, 1e149}, V{-1e308, 1e308},
          V{-1e149, 1e149}}) {
      const Axis axis = axis_over(s, values);
      INFO(axis.low << " to " << axis.high);
      REQUIRE(axis.low < axis.high);
      CHECK(std::isfinite(axis.high - axis.low));
      for (const double v : values) {
        if (std::abs(v) > 1e150) continue;
        CHECK(axis.low <= v);
        CHECK(v <= axis.high);
      }
      const V at = ticks(axis, 7);
      CHECK(!at.empty());
      CHECK(at.size() <= 7);
    }
  }
  const Axis one = axis_over(Spacing::linear, {80.21, std::nextafter(80.21, 100)});
  CHECK(one.low == Approx(80.21 * 0.9));
  CHECK(one.high == Approx(80.21 * 1.1));
}

TEST_CASE("ticks are multiples of 1, 2 and 5 times a power of ten") {
  using V = std::vector<double>;
  const auto linear = [](double low, double high, int most) {
    return ticks({Spacing::linear, low, high}, most);
  };
  CHECK(linear(0, 10, 6) == V{0, 2, 4, 6, 8, 10});
  CHECK(linear(0, 10, 11) == V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(linear(-0.31, 0.31, 7) == V{-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3});
  CHECK(linear(1.2e6, 4.9e6, 5) == V{2e6, 3e6, 4e6});
  CHECK(linear(0.98, 1.004, 6) == V{0.98, 0.985, 0.99, 0.995, 1});
  const auto decades = [](double low, double high, int most) {
    return ticks({Spacing::logarithmic, low, high}, most);
  };
  CHECK(decades(0.9, 30, 7) == V{1, 2, 5, 10, 20});
  CHECK(decades(0.9, 3000, 7) == V{1, 10, 100, 1000});
  CHECK(decades(1e-4, 2e7, 6) == V{1e-4, 1e-2, 1, 1e2, 1e4, 1e6});
  CHECK(decades(0.02, 0.3, 7) == V{0.02, 0.05, 0.1, 0.2});
  CHECK(decades(81, 98, 5) == V{85, 90, 95});  // less than a decade
}

TEST_CASE("no number of ticks is exceeded, and few axes are without") {
  for (double low = -3; low < 3; low += 0.37) {
    for (double length = 1e-3; length < 1e6; length *= 3.3) {
      for (int most = 2; most < 9; ++most) {
        const auto n = ticks({Spacing::linear, low, low + length}, most).size();
        CHECK(n <= static_cast<size_t>(most));
        CHECK(2 * n + 2 >= static_cast<size_t>(most) - 1);  // steps grow by 2.5 at most
      }
    }
  }
}

TEST_CASE("numbers are written as people write them") {
  CHECK(number_text(0) == "0");
  CHECK(number_text(5) == "5");
  CHECK(number_text(999) == "999");
  CHECK(number_text(1000) == "1,000");
  CHECK(number_text(-1234567) == "-1,234,567");
  CHECK(number_text(123456789, 15) == "123,456,789");
  CHECK(number_text(1234.5) == "1,234.5");
  CHECK(number_text(0.0005) == "0.0005");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(0.30000000000000004) == "0.3");
  CHECK(number_text(97.4165, 4) == "97.42");
  CHECK(number_text(123456, 4) == "123,456");
  CHECK(number_text(0.99999999) == "1");
  CHECK(number_text(2e9) == "2e+09");
  CHECK(number_text(1.5e-9) == "1.5e-09");
  CHECK(number_text(INFINITY) == "inf");
}

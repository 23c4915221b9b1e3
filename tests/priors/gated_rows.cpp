// Every rule of gates, compared with its finite differences.

#include "scales/gated_rows.h"

#include <cmath>

#include "catch.h"

namespace bamtrain {
namespace {

template <class Rule>
void check_gates(double first, double second, int64_t keys) {
  INFO("gates " << first << " and " << second << ", keys " << keys);
  const Rule rule(FormulaConstants{{0.5, 1.5}});
  double u[kMostGates] = {first, second}, d[kMostGates] = {};
  rule.adjoint(3, u, keys, d);
  for (int k = 0; k < Rule::kGates; ++k) {
    const double e = 1e-6, at = u[k];
    u[k] = at + e;
    const double above = rule.value(u, keys);
    u[k] = at - e;
    const double below = rule.value(u, keys);
    u[k] = at;
    CHECK(d[k] == Approx(3 * (above - below) / (2 * e)).margin(1e-7 * (1 + std::abs(above))));
  }
}

template <class Rule>
void check_rule(int rule) {
  INFO("rule " << rule << " of GatedRules");
  for (double first : {-2.0, 0.0, 1.5}) {
    for (double second : {-1.0, 0.5}) {
      for (int64_t keys : {1, 7, 4096}) check_gates<Rule>(first, second, keys);
    }
  }
}

TEST_CASE("rules of gates have the adjoints that they say") {
  int rule = 0;
  [&rule]<class... Rule>(TypeList<Rule...>) { (check_rule<Rule>(rule++), ...); }(GatedRules());
}

}  // namespace
}  // namespace bamtrain

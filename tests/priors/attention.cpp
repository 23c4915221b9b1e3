// Attention with extreme tables of bam, and with ssmax of the keys that rows see.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "differences.h"
#include "ops/attention_case.h"
#include "priors/bam.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

/// bam's exponents from far below to far above any trained value, one per head.
struct ExtremeBam {
  AttentionCase c;
  Theta theta;
  Operation op;

  explicit ExtremeBam(double mu)
      : theta{{{0, -0.2, 0.2, 0, -0.2, 0.2}, {-8, -3, -0.5, 0.5, 2, 4}, {}}} {
    theta.values[2].assign(6, mu);
    c.T = 150;
    c.H = 6;
    c.documents = true;
    c.table = TableForm::table;
    op = attention(c);
    op.inputs["table"].x = table(theta);
  }

  std::vector<double> table(const Theta& at) const {
    std::vector<double> b(static_cast<size_t>(c.H * c.T));
    find_prior("bam")->as<TableFamily>()->table(at.pointers().data(), {c.H, c.T, 0}, b.data());
    return b;
  }
};

TEST_CASE("attention with bam's exponent from -8 to 4: rows sum to one") {
  for (double mu : {0.0, -0.3, 0.3}) {
    ExtremeBam bam(mu);
    std::fill(bam.op.inputs["v"].x.begin(), bam.op.inputs["v"].x.end(), 1.0);
    for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
      const Arrays results = run(bam.op, t).results;
      double worst = 0;
      for (double x : results.at("out").x) worst = std::max(worst, std::abs(x - 1));
      // Two sums of the same numbers in different orders, with at most one rounding per key.
      CHECK(worst <= 150 * (t == Dtype::f64 ? 0x1p-53 : kF32) + (t == Dtype::bf16 ? kBf16 : 0));
    }
  }
}

TEST_CASE("attention with bam's exponent from -8 to 4: results and gradients are right") {
  const double mu = GENERATE(0.0, -0.3, 0.3);
  const ExtremeBam bam(mu);
  // Logits of 1e4 have errors of 4e-4 in fp32, and so have probabilities.
  compare_with_reference(bam.op, 4e-3);

  // From the table's gradient to the parameters, compared with differences of the whole in fp64.
  Machine m(Dtype::f64);
  const auto [results, gradients] = run(bam.op, m);
  const std::vector<double> dout = cotangents_of(bam.op, results).at("out").x;
  const std::vector<double>& dtable = gradients.at("table").x;
  const auto value = [&](const Theta& theta) {
    Arrays in = bam.op.inputs;
    in["table"].x = bam.table(theta);
    const std::vector<double> out = bam.op.forward(m, in).at("out").x;
    return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
  };
  // At mu = 0, |.| has its kink at the self key.
  for (size_t p = 0; p < (mu == 0 ? 2 : 3); ++p) {
    for (size_t h = 0; h < 6; ++h) {
      Theta up = bam.theta, down = bam.theta;
      up.values[p][h] += 1e-5;
      down.values[p][h] -= 1e-5;
      const double difference = (value(up) - value(down)) / 2e-5;
      const double of_head[3] = {bam.theta.values[0][h], bam.theta.values[1][h], mu};
      const Bam<double> formula(of_head, {});
      double gradient = 0, size = 0;
      for (size_t d = 0; d < 150; ++d) {
        double term[3] = {};
        formula.accumulate(dtable[h * 150 + d], static_cast<int64_t>(d), term);
        gradient += term[p];
        size += std::abs(term[p]);
      }
      INFO("parameter " << p << ", exponent " << bam.theta.values[1][h] << ", mu " << mu);
      // With exponent -8, a bias changes by 50 times its value per unit of mu: truncation is (50
      // h)^2 / 6.
      CHECK(std::isfinite(size));
      CHECK(std::abs(gradient - difference) <= 1e-6 * size + 1e-8);
    }
  }
}

TEST_CASE("ssmax with s log n = 1 is attention without a scale where n keys are seen") {
  AttentionCase c;
  c.window = 7;
  const Operation plain = attention(c);
  c.scale = ScaleForm::content;
  Operation scaled = attention(c);
  const std::vector<int32_t> first = first_keys(c);
  const LengthKind& ssmax = *find_scale("ssmax")->as<LengthKind>();
  const std::vector<double> s(static_cast<size_t>(c.H), 1 / std::log(7.0));
  const double* theta[] = {s.data()};
  std::vector<double>& t = scaled.inputs["scale"].x;  // (B, H, T)
  for (size_t n = 0; n < t.size(); ++n) {
    const auto at = static_cast<int64_t>(n), b = at / (c.H * c.T), h = at / c.T % c.H;
    const int64_t i = at % c.T;
    t[n] = ssmax.value({}, theta, h, i - first[static_cast<size_t>(b * c.T + i)] + 1);
  }
  Machine reference(Dtype::f64);
  const Values with = scaled.forward(reference, scaled.inputs).at("out");
  const Values without = plain.forward(reference, plain.inputs).at("out");
  for (size_t e = 0; e < with.x.size(); ++e) {
    const int64_t i = static_cast<int64_t>(e) / (c.H * c.D) % c.T;
    // Row 0 sees one key, rows 1 to 5 fewer than seven.
    if (i == 0 || i >= 6) {
      CHECK(with.x[e] == Approx(without.x[e]).epsilon(1e-12).margin(1e-14));
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

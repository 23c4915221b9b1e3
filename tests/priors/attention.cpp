// Mechanisms that coincide give the same attention.

#include <cmath>

#include "catch.h"
#include "differences.h"
#include "ops/attention_case.h"
#include "priors/alibi.h"
#include "priors/kerple.h"
#include "priors/registry.h"

namespace bamtrain::testing {
namespace {

AttentionCase small_case() {
  AttentionCase c;
  c.B = 2;
  c.T = 30;
  c.H = 6;
  c.K = 3;
  c.D = 8;
  c.table = TableForm::normal;
  return c;
}

/// Attention with this prior's table.
Arrays attend(const AttentionCase& c, const std::string& prior, const Theta& theta, int form = 0) {
  Operation op = attention(c);
  find_prior(prior)->table(theta.pointers().data(), {c.H, c.T, form},
                           op.inputs.at("table").x.data());
  Machine reference(Dtype::f64);
  return op.forward(reference, op.inputs);
}

TEST_CASE("attention with bam at exponent 1 and alibi's amplitudes is attention with alibi") {
  const AttentionCase c = small_case();
  Theta theta{{{}, std::vector<double>(6, 1.0), std::vector<double>(6, 0.0)}};
  for (int64_t h = 0; h < c.H; ++h) theta.values[0].push_back(std::log(alibi_slope(h, c.H)));
  // Biases differ by 1e-5 times a slope below 1, the same for every key.
  check_close("out", attend(c, "bam", theta).at("out"), attend(c, "alibi", {}).at("out"), 1e-10);
}

TEST_CASE("attention with kerple's power kernel at exponent 1 is attention with alibi") {
  const AttentionCase c = small_case();
  Theta theta{{{}, std::vector<double>(6, 1.0)}};
  for (int64_t h = 0; h < c.H; ++h) theta.values[0].push_back(alibi_slope(h, c.H));
  check_close("out", attend(c, "kerple", theta, Kerple<double>::kPower).at("out"),
              attend(c, "alibi", {}).at("out"), 1e-12);
}

TEST_CASE("attention with cable is attention with alibi where all gates are its slope") {
  AttentionCase c = small_case();
  const Values alibi = attend(c, "alibi", {}).at("out");
  c.table = TableForm::difference;
  Operation op = attention(c);
  std::vector<double>& S = op.inputs.at("sums").x;
  for (size_t n = 0; n < S.size(); ++n) {
    const auto row = static_cast<int64_t>(n);
    S[n] = alibi_slope(row / c.T % c.H, c.H) * static_cast<double>(row % c.T + 1);
  }
  Machine reference(Dtype::f64);
  check_close("out", op.forward(reference, op.inputs).at("out"), alibi, 1e-12);
}

TEST_CASE("attention with a linear t5 is attention with alibi while every distance has a bucket") {
  AttentionCase c = small_case();
  c.window = 16;
  Theta theta{{{}}};
  for (int64_t h = 0; h < c.H; ++h) {
    for (int k = 0; k < 32; ++k) theta.values[0].push_back(-alibi_slope(h, c.H) * k);
  }
  check_close("out", attend(c, "t5", theta).at("out"), attend(c, "alibi", {}).at("out"), 1e-12);
}

TEST_CASE("attention with a vanishing or a flat bam is attention without a prior") {
  AttentionCase c = small_case();
  const std::vector<double> zero(6, 0.0), one(6, 1.0), gone(6, -700.0);
  const Values vanishing = attend(c, "bam", {{gone, one, zero}}).at("out");
  const Values flat = attend(c, "bam", {{one, zero, one}}).at("out");
  c.table = TableForm::none;
  Machine reference(Dtype::f64);
  const Operation op = attention(c);
  const Values nope = op.forward(reference, op.inputs).at("out");
  check_close("vanishing", vanishing, nope, 1e-12);
  check_close("flat", flat, nope, 1e-12);
}

TEST_CASE("ssmax with s log n = 1 is attention without a scale where n keys are seen") {
  AttentionCase c = small_case();
  c.window = 7;
  const Operation plain = attention(c);
  c.scale = ScaleForm::content;
  Operation scaled = attention(c);
  const std::vector<int32_t> first = first_keys(c);
  const ScaleInfo& ssmax = *find_scale("ssmax");
  const std::vector<double> s(6, 1 / std::log(7.0));
  const double* theta[] = {s.data()};
  for (int64_t b = 0; b < c.B; ++b) {
    for (int64_t h = 0; h < c.H; ++h) {
      for (int64_t i = 0; i < c.T; ++i) {
        const int64_t n = i - first[static_cast<size_t>(b * c.T + i)] + 1;
        scaled.inputs["scale"].x[static_cast<size_t>((b * c.H + h) * c.T + i)] =
            ssmax.value({}, theta, h, n);
      }
    }
  }
  Machine reference(Dtype::f64);
  const Values with = scaled.forward(reference, scaled.inputs).at("out");
  const Values without = plain.forward(reference, plain.inputs).at("out");
  const auto row = static_cast<size_t>(c.H * c.D);
  for (size_t e = 0; e < with.x.size(); ++e) {
    const size_t i = e / row % static_cast<size_t>(c.T);
    // Row 0 sees one key, rows 1 to 5 fewer than seven.
    if (i == 0 || i >= 6) {
      CHECK(with.x[e] == Approx(without.x[e]).epsilon(1e-12).margin(1e-14));
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

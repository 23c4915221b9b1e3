// Mechanisms that coincide give the same attention.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "differences.h"
#include "ops/attention_case.h"
#include "priors/alibi.h"
#include "priors/bam.h"
#include "priors/kerple.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

AttentionCase small_case() {
  AttentionCase c;
  c.B = 2;
  c.T = 30;
  c.H = 6;
  c.K = 3;
  c.D = 8;
  c.table = TableForm::table;
  return c;
}

/// Attention with this prior's table.
Arrays attend(const AttentionCase& c, const std::string& prior, const Theta& theta, int form = 0) {
  Operation op = attention(c);
  find_prior(prior)->as<TableFamily>()->table(theta.pointers().data(), {c.H, c.T, form},
                                              op.inputs.at("table").x.data());
  Machine reference(Dtype::f64);
  return op.forward(reference, op.inputs);
}

TEST_CASE("attention with bam at exponent 1 and alibi's amplitudes is attention with alibi") {
  const AttentionCase c = small_case();
  Theta theta{{{}, std::vector<double>(6, 1.0), std::vector<double>(6, 0.0)}};
  for (int64_t h = 0; h < c.H; ++h) theta.values[0].push_back(std::log(alibi_slope(h, c.H)));
  // Biases differ by 1e-5 times a slope below 1, equally for every key.
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
  std::vector<double>& S = op.inputs.at("numbers").x;
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

/// Attention where queries and keys are zero in the last channel; other inputs are values(name,
/// index).
template <class Of>
Values attend_without_last(const AttentionCase& c, Of&& values) {
  Operation op = attention(c);
  for (auto& [name, input] : op.inputs) {
    for (size_t n = 0; n < input.x.size(); ++n) {
      const auto e = static_cast<int64_t>(n);
      if (name == "q" || name == "k") {
        if (e % c.D == c.D - 1) input.x[n] = 0;
      } else if (name != "v") {
        input.x[n] = values(name, e);
      }
    }
  }
  Machine reference(Dtype::f64);
  return op.forward(reference, op.inputs).at("out");
}

TEST_CASE("attention with transformer_xl: without vectors it has no prior, by them alibi's") {
  AttentionCase c = small_case();
  const auto alibi = [&c](int64_t h, int64_t d) {
    return -alibi_slope(h, c.H) * static_cast<double>(d);
  };
  const Values nope = attend_without_last(c, [](auto...) { return 0.0; });
  const Values sloped =
      attend_without_last(c, [&](auto&, int64_t n) { return alibi(n / c.T, n % c.T); });
  c.table = TableForm::relative;
  check_close("nope", attend_without_last(c, [](auto...) { return 0.0; }), nope, 1e-12);
  // The bias is constant over all distances, and u is in a channel that is zero in the keys.
  const auto flat = [&c](const std::string& name, int64_t n) {
    return name == "r" ? 0.3 : name == "w" || n % c.D == c.D - 1 ? 1.0 : 0.0;
  };
  check_close("flat", attend_without_last(c, flat), nope, 1e-12);
  // Slopes along the channel in which only w is nonzero.
  const auto slopes = [&](const std::string& name, int64_t n) {
    if (name == "u" || n % c.D != c.D - 1) return 0.0;
    if (name == "w") return std::sqrt(static_cast<double>(c.D));
    return alibi(n / c.D % c.H, n / c.D / c.H);
  };
  check_close("alibi", attend_without_last(c, slopes), sloped, 1e-12);
}

TEST_CASE("attention with cope where keys are 0: every gate is 1/2, a key is at (d + 1) / 2") {
  AttentionCase c = small_case();
  c.table = TableForm::contextual;
  c.positions = 9;
  c.documents = true;
  Operation op = attention(c);
  std::fill(op.inputs.at("k").x.begin(), op.inputs.at("k").x.end(), 0.0);
  const std::vector<double>&q = op.inputs.at("q").x, &v = op.inputs.at("v").x,
        &E = op.inputs.at("positions").x;
  const std::vector<int32_t> first = first_keys(c);
  Values truth{Role::activation, {c.B, c.T, c.H, c.D}, std::vector<double>(q.size(), 0.0)};
  for (int64_t row = 0; row < c.B * c.T * c.H; ++row) {
    const int64_t h = row % c.H, i = row / c.H % c.T, b = row / c.H / c.T;
    double sum = 0;
    double* const out = truth.x.data() + row * c.D;
    for (int64_t j = first[static_cast<size_t>(b * c.T + i)]; j <= i; ++j) {
      const double at = std::min(static_cast<double>(i - j + 1) / 2, 8.0), low = std::floor(at);
      double bias = 0;
      for (int64_t d = 0; d < c.D; ++d) {
        const double* const of_low = E.data() + d * c.positions + static_cast<int64_t>(low);
        const double of_high = low < 8 ? of_low[1] : *of_low;
        bias += q[static_cast<size_t>(row * c.D + d)] * std::lerp(*of_low, of_high, at - low);
      }
      const double weight = std::exp(bias);
      const int64_t key = (b * c.T + j) * c.K + h / (c.H / c.K);
      for (int64_t d = 0; d < c.D; ++d) out[d] += weight * v[static_cast<size_t>(key * c.D + d)];
      sum += weight;
    }
    for (int64_t d = 0; d < c.D; ++d) out[d] /= sum;
  }
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    Machine m(t);
    check_close("out", op.forward(m, op.inputs).at("out"), truth,
                t == Dtype::f64 ? 1e-13 : fp32_tolerance(c));
  }
}

TEST_CASE("attention with cope whose columns are equal is attention without a prior") {
  AttentionCase c = small_case();
  c.table = TableForm::contextual;
  c.positions = 5;
  Operation cope = attention(c);
  std::vector<double>& E = cope.inputs.at("positions").x;
  for (size_t n = 0; n < E.size(); ++n) E[n] = E[n / 5 * 5];
  c.table = TableForm::none;
  Operation nope = attention(c);
  Machine reference(Dtype::f64);
  const Values dout = random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout");
  const auto gradients = [&](const Operation& op) {
    Arrays all =
        op.adjoint(reference, op.inputs, op.forward(reference, op.inputs), {{"out", dout}}, 0);
    return all;
  };
  const Arrays found = gradients(cope), truth = gradients(nope);
  for (const char* name : {"q", "k", "v"}) check_close(name, found.at(name), truth.at(name), 1e-12);
}

/// bam's exponents from far below to far above any trained value, one per head.
struct ExtremeBam {
  AttentionCase c;
  Theta theta;
  Operation op;

  explicit ExtremeBam(double mu)
      : theta{{{0, -0.2, 0.2, 0, -0.2, 0.2}, {-8, -3, -0.5, 0.5, 2, 4}, {}}} {
    theta.values[2].assign(6, mu);
    c.B = 2;
    c.T = 150;
    c.H = 6;
    c.K = 3;
    c.D = 16;
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
      Machine m(t);
      const Arrays results = bam.op.forward(m, bam.op.inputs);
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
  for (Dtype t : {Dtype::f32, Dtype::bf16}) compare_with_reference(bam.op, t, 4e-3);

  // From the table's gradient to the parameters, compared with differences of the whole in fp64.
  const Values dout = random_values(Role::activation, {bam.c.B, bam.c.T, bam.c.H, bam.c.D}, "dout");
  Machine m(Dtype::f64);
  const Arrays saved = bam.op.forward(m, bam.op.inputs);
  const Arrays gradients = bam.op.adjoint(m, bam.op.inputs, saved, {{"out", dout}}, 0);
  const std::vector<double>& dtable = gradients.at("table").x;
  const auto value = [&](const Theta& theta) {
    Arrays in = bam.op.inputs;
    in["table"].x = bam.table(theta);
    const Arrays results = bam.op.forward(m, in);
    const std::vector<double>& out = results.at("out").x;
    return std::inner_product(out.begin(), out.end(), dout.x.begin(), 0.0);
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
  AttentionCase c = small_case();
  c.window = 7;
  const Operation plain = attention(c);
  c.scale = ScaleForm::content;
  Operation scaled = attention(c);
  const std::vector<int32_t> first = first_keys(c);
  const LengthKind& ssmax = *find_scale("ssmax")->as<LengthKind>();
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

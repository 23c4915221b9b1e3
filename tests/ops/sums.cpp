// Running sums of gates, and attention that reads them, over long sequences.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention_case.h"
#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("the adjoint of running sums agrees with finite differences") {
  CHECK(difference_error(running_sums({2, 9, 3}), 60) < kDifferenceTolerance);
}

TEST_CASE("running sums on the CPU agree with the reference") {
  // All sums are in fp64: only storing in fp32 rounds.
  for (const SumsCase& c :
       {SumsCase{1, 1, 1}, {2, 40, 3}, {3, 300, 5}, {2, 40, 3, 1}, {1, 30, 2, 9}}) {
    compare_with_reference(running_sums(c), Dtype::f32, 2 * kF32);
    compare_with_reference(running_sums(c), Dtype::bf16, 2 * kF32);
  }
}

TEST_CASE("running sums are exact over 500,000 tokens") {
  const double u = std::log1p(std::exp(1.75));
  for (Dtype t : {Dtype::f32, Dtype::f64}) {
    // The reference adds up the gates again for every row.
    const int64_t T = t == Dtype::f64 ? 20'000 : 500'000;
    Operation op = running_sums({1, T, 1});
    op.inputs["bias"].x[0] = 0.25;
    for (double& g : op.inputs["gates"].x) g = 1.5;
    Machine m(t);
    const std::vector<double> S = op.forward(m, op.inputs).at("sums").x;
    double worst = 0;
    for (int64_t n = 0; n < T; ++n) {
      const double exact = static_cast<double>(n + 1) * u;
      worst = std::max(worst, std::abs(S[static_cast<size_t>(n)] - exact) / exact);
    }
    // At most T roundings; the differences that attention reads near the diagonal are as accurate.
    CHECK(worst < static_cast<double>(T) * 0x1p-53);
    CHECK(std::abs(S[static_cast<size_t>(T - 1)] - S[static_cast<size_t>(T - 101)] - 100 * u) <
          1e-8);
  }
}

TEST_CASE("attention reads sums past a million as exactly as small ones") {
  for (TableForm table : {TableForm::difference, TableForm::log_square}) {
    AttentionCase c;
    c.B = 2;
    c.T = 200;
    c.H = 2;
    c.K = 1;
    c.D = 16;
    c.table = table;
    c.documents = true;
    Operation near = attention(c), far = near;
    for (double& S : near.inputs["numbers"].x) S = std::round(S * 1024) / 1024;
    far.inputs["numbers"] = near.inputs["numbers"];
    for (double& S : far.inputs["numbers"].x) S += 0x1p21;  // exact
    Machine m(Dtype::f32);
    const Arrays a = near.forward(m, near.inputs), b = far.forward(m, far.inputs);
    check_equal(b.at("out").x, a.at("out").x);
    const Arrays dout{{"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout")}};
    const Arrays da = near.adjoint(m, near.inputs, a, dout, 0);
    const Arrays db = far.adjoint(m, far.inputs, b, dout, 0);
    for (const auto& [name, v] : da) check_equal(db.at(name).x, v.x);
  }
}

/// Row i of attention with one head and the bias S_j - S_i, in a window, term by term.
struct DenseRow {
  int64_t first, i;
  std::vector<double> p, out, dz;

  DenseRow(const AttentionCase& c, const Arrays& in, const double* S, const double* dout, int64_t i)
      : first(std::max<int64_t>(0, i - c.window + 1)), i(i), out(static_cast<size_t>(c.D)) {
    const auto dot = [&](const double* a, const char* name, int64_t j) {
      return std::inner_product(a, a + c.D, &in.at(name).x[static_cast<size_t>(j * c.D)], 0.0);
    };
    const double* q = &in.at("q").x[static_cast<size_t>(i * c.D)];
    double sum = 0, mean = 0;
    for (int64_t j = first; j <= i; ++j) {
      p.push_back(std::exp(dot(q, "k", j) / std::sqrt(static_cast<double>(c.D)) + S[j] - S[i]));
      sum += p.back();
    }
    for (double& x : p) x /= sum;
    for (int64_t j = first; j <= i; ++j) {
      const double weight = p[static_cast<size_t>(j - first)];
      mean += weight * dot(dout, "v", j);
      for (int64_t e = 0; e < c.D; ++e) {
        out[static_cast<size_t>(e)] += weight * in.at("v").x[static_cast<size_t>(j * c.D + e)];
      }
    }
    for (int64_t j = first; j <= i; ++j) {
      dz.push_back(p[static_cast<size_t>(j - first)] * (dot(dout, "v", j) - mean));
    }
  }

  void add_gradients(const AttentionCase& c, const Arrays& in, const double* dout,
                     Arrays& g) const {
    const double scale = 1 / std::sqrt(static_cast<double>(c.D));
    for (int64_t j = first; j <= i; ++j) {
      const auto n = static_cast<size_t>(j - first);
      g.at("numbers").x[static_cast<size_t>(j)] += dz[n];
      for (int64_t e = 0; e < c.D; ++e) {
        const auto own = static_cast<size_t>(i * c.D + e), key = static_cast<size_t>(j * c.D + e);
        g.at("q").x[own] += dz[n] * scale * in.at("k").x[key];
        g.at("k").x[key] += dz[n] * scale * in.at("q").x[own];
        g.at("v").x[key] += p[n] * dout[e];
      }
    }
  }
};

TEST_CASE("cable at 500,000 tokens: rows sum to one, results and gradients are those of fp64") {
  AttentionCase c;
  c.T = 500'000;
  c.window = 300;  // bounds the work, but not S
  c.table = TableForm::difference;
  const auto T = static_cast<size_t>(c.T), D = static_cast<size_t>(c.D);
  Machine m(Dtype::f32, kNewestIsa, {.B = 1, .T = c.T, .H = 1, .K = 1, .D = c.D});
  Operation gates = running_sums({1, c.T, 1}), op = attention(c);
  gates.inputs["bias"].x[0] = 0.25;
  for (Operation* o : {&gates, &op}) {
    for (auto& [name, v] : o->inputs) {
      if (name == "numbers") continue;
      for (double& x : v.x) x = rounded(x, Dtype::f32);
    }
  }
  // The truth, in more than fp64: S is about 500,000 at the end.
  std::vector<double> S, slope;
  long double total = 0;
  for (double gate : gates.inputs.at("gates").x) {
    const double x = gate + 0.25;
    S.push_back(static_cast<double>(total += std::log1p(std::exp(x))));
    slope.push_back(1 / (1 + std::exp(-x)));
  }
  CHECK(S.back() > 4e5);
  op.inputs["numbers"] = gates.forward(m, gates.inputs).at("sums");

  Operation ones = op;
  std::fill(ones.inputs["v"].x.begin(), ones.inputs["v"].x.end(), 1.0);
  const Arrays weights = ones.forward(m, ones.inputs);
  double worst = 0;
  for (double x : weights.at("out").x) worst = std::max(worst, std::abs(x - 1));
  // Two sums of the same numbers in different orders, with at most one rounding per key.
  CHECK(worst <= static_cast<double>(c.window) * kF32);

  // Cotangents only in some rows, near the ends of tiles and of the sequence. The gradients must be
  // theirs, and zero elsewhere.
  const Arrays saved = op.forward(m, op.inputs);
  Values dout = constant_values(Role::activation, {1, c.T, 1, c.D}, 0), out = dout;
  Values found = out;
  Arrays truth;
  for (const char* name : {"q", "k", "v", "numbers"}) {
    truth[name] = op.inputs.at(name);
    std::fill(truth[name].x.begin(), truth[name].x.end(), 0.0);
  }
  const Values random = random_values(Role::activation, {1, c.T, 1, c.D}, "dout");
  for (int64_t i : {0L, 1L, 299L, 4095L, 4096L, 250'000L, 250'007L, 499'900L, 499'999L}) {
    const size_t begin = static_cast<size_t>(i) * D;
    for (size_t e = begin; e < begin + D; ++e) dout.x[e] = rounded(random.x[e], Dtype::f32);
    const DenseRow row(c, op.inputs, S.data(), &dout.x[begin], i);
    std::copy_n(row.out.begin(), D, out.x.begin() + static_cast<int64_t>(begin));
    std::copy_n(saved.at("out").x.begin() + static_cast<int64_t>(begin), D,
                found.x.begin() + static_cast<int64_t>(begin));
    row.add_gradients(c, op.inputs, &dout.x[begin], truth);
  }
  check_close("out", found, out, 100 * kF32);
  const Arrays d = op.adjoint(m, op.inputs, saved, {{"out", dout}}, 0);
  for (const auto& [name, v] : truth) {
    check_close(name, d.at(name), v, 100 * kF32);
    for (size_t e = 0; e < v.x.size(); ++e) {
      if (v.x[e] == 0 && d.at(name).x[e] != 0) FAIL(name << " " << e << ": " << d.at(name).x[e]);
    }
  }

  // For the gates: the sum of all later elements, times the derivative of softplus. Before all
  // these rows, it is zero up to the rounding of its terms.
  const Arrays back = gates.adjoint(m, gates.inputs, {}, {{"sums", d.at("numbers")}}, 0);
  double behind = 0, size = 0, error = 0;
  for (size_t t = T; t-- > 0;) {
    behind += truth.at("numbers").x[t];
    size += std::abs(truth.at("numbers").x[t]);
    error = std::max(error, std::abs(back.at("gates").x[t] - behind * slope[t]));
  }
  CHECK(error <= 10 * kF32 * size);
}

TEST_CASE("running sums have the same bits for any number of threads") {
  CHECK(same_for_any_threads(running_sums({2, 100, 5}), Dtype::bf16));
}

}  // namespace
}  // namespace bamtrain::testing

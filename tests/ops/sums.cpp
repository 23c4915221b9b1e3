// Running sums of gates, and attention that reads them, over long sequences.

#include <algorithm>
#include <cmath>
#include <functional>

#include "attention_case.h"
#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("the adjoint of running sums agrees with finite differences") {
  check_differences(running_sums({2, 17, 4}), 60);
}

TEST_CASE("running sums on the CPU agree with the reference") {
  // All sums are in fp64: only storing in fp32 rounds.
  for (const SumsCase& c :
       {SumsCase{1, 1, 1}, {2, 40, 3}, {3, 300, 5}, {2, 40, 3, 1}, {1, 30, 2, 9}}) {
    compare_with_reference(running_sums(c), 2 * kF32);
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
    c.T = 200;
    c.table = table;
    c.documents = true;
    Operation near = attention(c), far = near;
    for (double& S : near.inputs["numbers"].x) S = std::round(S * 1024) / 1024;
    far.inputs["numbers"] = near.inputs["numbers"];
    for (double& S : far.inputs["numbers"].x) S += 0x1p21;  // exact
    check_same(run(far, Dtype::f32), run(near, Dtype::f32));
  }
}

TEST_CASE("cable at 500,000 tokens: rows sum to one, results and gradients are those of fp64") {
  AttentionCase c;
  c.B = c.H = c.K = 1;
  c.D = 8;
  c.T = 500'000;
  c.window = 300;  // bounds the work, but not S
  c.table = TableForm::difference;
  const auto T = static_cast<size_t>(c.T), D = static_cast<size_t>(c.D);
  Machine m(Dtype::f32, kNewestIsa, {.B = 1, .T = c.T, .H = 1, .K = 1, .D = c.D});
  Operation gates = running_sums({1, c.T, 1}), op = attention(c);
  gates.inputs["bias"].x[0] = 0.25;
  for (Operation* o : {&gates, &op}) o->inputs = round_to(o->inputs, m);
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
  // theirs, and zero elsewhere. The truth: the reference for the keys that such a row sees.
  const Arrays saved = op.forward(m, op.inputs);
  op.cotangents["out"] = constant_values(Role::activation, {1, c.T, 1, c.D}, 0);
  std::vector<double>& dout = op.cotangents["out"].x;
  Values found{Role::activation, {1, 9, 1, c.D}, {}}, out = found;
  Arrays truth;
  for (const char* name : {"q", "k", "v", "numbers"}) {
    truth[name] = constant_values(op.inputs.at(name).role, op.inputs.at(name).shape, 0);
  }
  const Values random = random_values(Role::activation, {1, c.T, 1, c.D}, "dout");
  for (int64_t i : {0L, 1L, 299L, 4095L, 4096L, 250'000L, 250'007L, 499'900L, 499'999L}) {
    AttentionCase seen = c;
    seen.T = std::min(i + 1, c.window);
    Operation of_row = attention(seen);
    const auto begin = static_cast<size_t>(i + 1 - seen.T);  // the first key
    for (auto& [name, v] : of_row.inputs) {
      const std::vector<double>& all = name == "numbers" ? S : op.inputs.at(name).x;
      std::copy_n(&all[begin * (name == "numbers" ? 1 : D)], v.x.size(), v.x.begin());
    }
    Values& d = of_row.cotangents["out"] = constant_values(out.role, {1, seen.T, 1, c.D}, 0);
    for (size_t e = 0, at = static_cast<size_t>(i) * D; e < D; ++e, ++at) {
      dout[at] = *(d.x.end() - static_cast<int64_t>(D - e)) = rounded(random.x[at], Dtype::f32);
      found.x.push_back(saved.at("out").x[at]);
    }
    const Pass row = run(of_row, Dtype::f64);
    const std::vector<double>& rows = row.results.at("out").x;
    out.x.insert(out.x.end(), rows.end() - c.D, rows.end());
    for (auto& [name, v] : truth) {
      const std::vector<double>& g = row.gradients.at(name).x;
      double* const sum = &v.x[begin * (name == "numbers" ? 1 : D)];
      std::transform(g.begin(), g.end(), sum, sum, std::plus<>());
    }
  }
  check_close("out", found, out, 100 * kF32);
  const Arrays d = op.adjoint(m, op.inputs, saved, op.cotangents, 0);
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
  check_same_for_any_threads(running_sums({2, 100, 5}), Dtype::bf16);
}

}  // namespace
}  // namespace bamtrain::testing

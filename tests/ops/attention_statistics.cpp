// Entropy and nonzero keys of attention rows, with every normalizer.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "attention_case.h"
#include "catch.h"
#include "normalizer_forms.h"

namespace bamtrain::testing {
namespace {

std::vector<NormalizerForm> normalizers_with_more() {
  return every_normalizer({entmax(1.01), topk(4)});
}

Arrays results_on(Dtype t, const Operation& op) { return run(op, t).results; }

/// The operations that return a row's entropy.
std::vector<Operation> operations(const AttentionCase& c) {
  std::vector<Operation> all = {attention_statistics(c)};
  if (c.normalizer.kind == NormalizerKind::softmax && c.scale == ScaleForm::none) {
    all.push_back(attention_entropy(c));
  }
  return all;
}

/// How many keys row `i` of sequence `b` sees.
int64_t visible(const AttentionCase& c, int64_t b, int64_t i) {
  return i - first_keys(c)[static_cast<size_t>(b * c.T + i)] + 1;
}

/// Calls f(n, entropy, nonzero_keys) for every row, where n is the number of keys that the row
/// sees, and nonzero_keys 0 if the results are entropies alone.
template <class F>
void for_rows(const AttentionCase& c, const Arrays& found, F&& f) {
  const std::vector<double>& H = found.at("entropy").x;
  REQUIRE(H.size() == static_cast<size_t>(c.B * c.H * c.T));
  for (size_t e = 0; e < H.size(); ++e) {
    const auto row = static_cast<int64_t>(e);
    const double nonzero_keys = found.count("support") ? found.at("support").x[e] : 0;
    f(visible(c, row / (c.H * c.T), row % c.T), H[e], nonzero_keys);
  }
}

/// A rounding error u in a logit changes an entropy by up to |log p| u. Above alpha 2, it can add a
/// key of weight u^(1 / (alpha - 1)) to the nonzero keys. Near alpha 1, errors in p's root count 1
/// / (alpha - 1) times.
double statistics_tolerance(const AttentionCase& c) {
  const double a = c.normalizer.alpha - 1, rounding = 8 * fp32_tolerance(c);
  if (c.normalizer.kind != NormalizerKind::entmax) return rounding;
  return std::max(rounding / std::min(a, 1.0), a > 1 ? 16 * std::pow(kF32, 1 / a) : 0);
}

TEST_CASE("statistics of attention on the CPU agree with the reference, with every normalizer") {
  size_t n = 0;
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    for (const NormalizerForm& form : normalizers_with_more()) {
      for (int64_t T : {1, 2, 17, 64, 65, 130, 200}) {
        for (int64_t D : {6, 48}) {
          const size_t turn = n + n / 14;  // of 14 lengths and dimensions
          AttentionCase c = turning_case(turn, T, kTableForms[turn % std::size(kTableForms)]);
          c.D = D;
          c.content = 1 + static_cast<double>(n++ % 3);
          c.normalizer = form;
          INFO(describe(c));
          compare_with_reference(attention_statistics(c), t, statistics_tolerance(c));
        }
      }
    }
  }
}

TEST_CASE("rows of equal logits have the statistics of equal weights") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    const bool stick = form.kind == NormalizerKind::stick_breaking;
    if (!traits_of(form.kind).sums_to_one && !stick) continue;  // no sum shows the weights
    AttentionCase c;
    c.T = 200;
    c.documents = true;
    c.normalizer = form;
    for (Operation op : operations(c)) {
      for (double& q : op.inputs["q"].x) q = 0;
      for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
        INFO(describe(c) << " in " << name_of(t));
        size_t wrong = 0;
        const Arrays found = results_on(t, op);
        for_rows(c, found, [&](int64_t n, double entropy, double nonzero_keys) {
          double truth = std::log(static_cast<double>(n));
          int64_t keys = n;
          if (form.kind == NormalizerKind::topk) {
            keys = form.keys.of(n, c.T);
            truth = std::log(static_cast<double>(keys));
          }
          if (stick) {  // weights 1/2, 1/4, ...
            keys = n - 1;
            truth = 0;
            for (int64_t d = 1; d < n; ++d) {
              truth += std::exp2(-static_cast<double>(d)) * static_cast<double>(d) * std::log(2.0);
            }
          }
          if (found.count("support")) {
            const double error = t == Dtype::f64 ? 1e-12 : statistics_tolerance(c);
            wrong += !(std::abs(entropy - truth) <= error * (1 + truth));
            wrong += nonzero_keys != static_cast<double>(keys);
          } else {  // the sum of n ones is exact; the logarithm is rounded
            const double error = t == Dtype::f64 ? 1e-14 : 4 * kF32;
            wrong += !(std::abs(entropy - truth) <= error * truth);
          }
        });
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("a row that sees one key has entropy 0 and that key, exactly") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    for (TableForm table : table_forms_and({TableForm::falling, TableForm::self})) {
      for (ScaleForm scale : {ScaleForm::none, ScaleForm::content}) {
        AttentionCase c;
        c.H = c.K = 3;
        c.table = table;
        c.scale = scale;
        c.window = 1;
        c.normalizer = form;
        const NormalizerTraits traits = traits_of(form.kind);
        const double keys = traits.own_key ? 1 : 0;
        for (const Operation& op : operations(c)) {
          for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
            INFO(describe(c) << " in " << name_of(t));
            size_t wrong = 0;
            const Arrays found = results_on(t, op);
            for_rows(c, found, [&](int64_t n, double entropy, double nonzero_keys) {
              REQUIRE(n == 1);
              wrong += traits.constant_alone() && entropy != 0;
              wrong += found.count("support") && nonzero_keys != keys;
            });
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("keys whose weights underflow count where the normalizer gives them weight") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    AttentionCase c;
    c.B = c.H = c.K = 1;
    c.T = 100;
    c.D = 4;
    c.normalizer = form;
    Operation op = attention_statistics(c);
    // z = 2000 for the first key, 0 for the others.
    for (int64_t n = 0; n < c.T * c.D; ++n) {
      op.inputs["q"].x[static_cast<size_t>(n)] = n % c.D == 0 ? 2 : 0;
      op.inputs["k"].x[static_cast<size_t>(n)] = n == 0 ? 2000 : 0;
    }
    for (Dtype t : {Dtype::f64, Dtype::f32}) {
      INFO(describe(c) << " in " << name_of(t));
      size_t wrong = 0;
      for_rows(c, results_on(t, op), [&](int64_t n, double entropy, double nonzero_keys) {
        const bool stick = form.kind == NormalizerKind::stick_breaking;  // it prefers near keys
        int64_t keys = stick ? n - 1 : n;
        if (form.kind == NormalizerKind::entmax) keys = 1;
        if (form.kind == NormalizerKind::topk) keys = form.keys.of(n, c.T);
        wrong += nonzero_keys != static_cast<double>(keys) || !(stick || std::abs(entropy) < 1e-6);
      });
      CHECK(wrong == 0);
    }
  }
  // Alpha 1.01: a key halfway to leaving the nonzero keys has a weight of 2^-100.
  AttentionCase c;
  c.B = c.H = c.K = 1;
  c.T = 2;
  c.D = 4;
  c.normalizer = entmax(1.01);
  Operation op = attention_statistics(c);
  op.inputs["q"].x = {2, 0, 0, 0, 2, 0, 0, 0};
  op.inputs["k"].x = {50, 0, 0, 0, 0, 0, 0, 0};
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    CHECK(results_on(t, op).at("support").x == std::vector<double>{1, 2});
  }
}

TEST_CASE("statistics of attention have the same bits for any number of threads") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    for (int64_t T : {70, 700}) {
      AttentionCase c;
      c.B = 1;
      c.T = T;
      c.table = TableForm::falling;
      c.documents = T == 70;
      c.normalizer = form;
      for (const Operation& op : operations(c)) check_same_for_any_threads(op, Dtype::bf16);
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

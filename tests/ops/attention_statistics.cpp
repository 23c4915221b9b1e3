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

WorkspaceShape normalizer_workspace(const NormalizerForm& form) {
  WorkspaceShape shape = Machine::kShape;
  if (!traits_of(form.kind).fused) shape.attention.push_back({.general_path = true});
  return shape;
}

Arrays statistics_on(Dtype t, const AttentionCase& c, const Operation& op) {
  Machine m(t, kNewestIsa, normalizer_workspace(c.normalizer));
  return op.forward(m, op.inputs);
}

/// How many keys row `i` of sequence `b` sees.
int64_t visible(const AttentionCase& c, int64_t b, int64_t i) {
  return i - first_keys(c)[static_cast<size_t>(b * c.T + i)] + 1;
}

/// Calls f(n, entropy, nonzero_keys) for every row, where n is the number of keys that the row
/// sees.
template <class F>
void for_rows(const AttentionCase& c, const Arrays& found, F&& f) {
  const std::vector<double>&H = found.at("entropy").x, &s = found.at("support").x;
  REQUIRE(H.size() == static_cast<size_t>(c.B * c.H * c.T));
  for (size_t e = 0; e < H.size(); ++e) {
    const auto row = static_cast<int64_t>(e);
    f(visible(c, row / (c.H * c.T), row % c.T), H[e], s[e]);
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
      Machine newest(t, kNewestIsa, normalizer_workspace(form)),
          older(t, CpuIsa::avx2, normalizer_workspace(form));
      for (int64_t T : {1, 2, 17, 64, 65, 130, 200}) {
        for (int64_t D : {6, 48}) {
          AttentionCase c;
          c.T = T;
          c.D = D;
          c.table = kTableForms[n % std::size(kTableForms)];
          c.scale = kScaleForms[n % 3];
          c.H = n % 2 == 0 ? 2 : 3;
          c.K = n % 4 == 0 ? 2 : 1;
          c.B = 1 + static_cast<int64_t>(n / 3 % 2);
          c.documents = n / 2 % 3 == 1;
          c.window = n % 7 == 2 ? 33 : 0;
          c.content = 1 + static_cast<double>(n % 3);
          c.normalizer = form;
          ++n;
          INFO(describe(c));
          compare_with_reference(attention_statistics(c), t, statistics_tolerance(c),
                                 {&newest, &older});
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
    c.B = 2;
    c.T = 130;
    c.H = 2;
    c.K = 1;
    c.D = 16;
    c.documents = true;
    c.normalizer = form;
    Operation op = attention_statistics(c);
    for (double& q : op.inputs["q"].x) q = 0;
    for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
      INFO(describe(c) << " in " << name_of(t));
      size_t wrong = 0;
      for_rows(c, statistics_on(t, c, op), [&](int64_t n, double entropy, double nonzero_keys) {
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
        const double error = t == Dtype::f64 ? 1e-12 : statistics_tolerance(c);
        wrong += !(std::abs(entropy - truth) <= error * (1 + truth));
        wrong += nonzero_keys != static_cast<double>(keys);
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a row that sees one key has entropy 0 and that key, exactly") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    for (TableForm table : table_forms_and({TableForm::self})) {
      AttentionCase c;
      c.T = 70;
      c.H = c.K = 3;
      c.D = 16;
      c.table = table;
      c.scale = ScaleForm::content;
      c.window = 1;
      c.normalizer = form;
      const NormalizerTraits traits = traits_of(form.kind);
      const double keys = traits.own_key ? 1 : 0;
      const Operation op = attention_statistics(c);
      for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
        INFO(describe(c) << " in " << name_of(t));
        size_t wrong = 0;
        for_rows(c, statistics_on(t, c, op), [&](int64_t n, double entropy, double nonzero_keys) {
          REQUIRE(n == 1);
          wrong += (traits.constant_alone() && entropy != 0) || nonzero_keys != keys;
        });
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("keys whose weights underflow count where the normalizer gives them weight") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    AttentionCase c;
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
      for_rows(c, statistics_on(t, c, op), [&](int64_t n, double entropy, double nonzero_keys) {
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
  c.T = 2;
  c.D = 4;
  c.normalizer = entmax(1.01);
  Operation op = attention_statistics(c);
  op.inputs["q"].x = {2, 0, 0, 0, 2, 0, 0, 0};
  op.inputs["k"].x = {50, 0, 0, 0, 0, 0, 0, 0};
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    CHECK(statistics_on(t, c, op).at("support").x == std::vector<double>{1, 2});
  }
}

TEST_CASE("statistics of attention have the same bits for any number of threads") {
  for (const NormalizerForm& form : normalizers_with_more()) {
    for (int64_t T : {70, 700}) {
      AttentionCase c;
      c.T = T;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      c.table = TableForm::falling;
      c.documents = T == 70;
      c.normalizer = form;
      const Operation op = attention_statistics(c);
      Arrays one;
      for (int threads : {1, 2, 3, 4}) {
        const Threads limit(threads);
        const Arrays found = statistics_on(Dtype::bf16, c, op);
        if (threads == 1) one = found;
        for (const char* name : {"entropy", "support"}) {
          check_equal(found.at(name).x, one.at(name).x);
        }
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

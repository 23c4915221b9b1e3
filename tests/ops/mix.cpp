// Attention with mixed heads: finite differences of the reference, the CPU backend compared with
// it, and a network of zeros.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "attention_case.h"
#include "catch.h"
#include "normalizer_forms.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

constexpr MixForm kMixForms[] = {MixForm::concat, MixForm::concat_residual, MixForm::add_residual,
                                 MixForm::bias_only};

/// The forms of bias that a mix reads, and falling tables.
std::vector<TableForm> bases() {
  std::vector<TableForm> all;
  for (const TableForm form : kTableForms) {
    if (!reads_content(form)) all.push_back(form);
  }
  all.push_back(TableForm::falling);
  return all;
}

/// Fixes the inputs without a gradient: fire's functions of distances and, if weights sum to 1, c2,
/// which shifts all logits of a row equally.
Operation with_gradients(const AttentionCase& c) {
  Operation op = attention(c);
  Arrays fixed;
  for (const char* name : {"psi", "psi_dc", "inverse", "c2"}) {
    const bool constant = name != std::string("c2") || traits_of(c.normalizer.kind).sums_to_one;
    if (constant) fixed.insert(op.inputs.extract(name));
  }
  op.forward = [fixed, run = op.forward](Machine& m, Arrays in) {
    in.insert(fixed.begin(), fixed.end());
    return run(m, in);
  };
  op.adjoint = [fixed, run = op.adjoint](Machine& m, Arrays in, const Arrays& saved,
                                         const Arrays& cotangents, double existing) {
    in.insert(fixed.begin(), fixed.end());
    Arrays gradients = run(m, in, saved, cotangents, existing);
    for (const double d : gradients.at("c2").x) CHECK((!fixed.count("c2") || std::abs(d) < 1e-12));
    return gradients;
  };
  return op;
}

TEST_CASE("the adjoint of mixed heads agrees with finite differences") {
  size_t n = 0;
  for (const TableForm base : bases()) {
    for (const MixForm form : kMixForms) {
      if (base == TableForm::none && form == MixForm::bias_only) continue;  // a constant
      for (const ScaleForm scale : kScaleForms) {
        AttentionCase c;
        c.B = 2;
        c.T = 9;
        c.H = 4;
        c.K = n % 2 == 0 ? 2 : 4;
        c.D = 6;
        c.table = base;
        c.scale = scale;
        c.mix = form;
        c.hidden = 5;
        c.documents = n % 3 == 1;
        c.window = n % 4 == 2 ? 5 : 0;
        c.zero_scale = n % 5 == 3;
        if (n % 4 == 3) c.content_scale = 0.7;
        ++n;
        INFO(describe(c));
        CHECK(difference_error(with_gradients(c), 20) < kDifferenceTolerance);
      }
    }
  }
}

TEST_CASE("the adjoint of mixed heads agrees with finite differences under every normalizer") {
  for (const NormalizerForm& normalizer : one_of_every_normalizer({entmax(1.5, true)})) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
      c.T = 11;
      c.H = c.K = 3;
      c.D = 6;
      c.table = TableForm::falling;
      c.mix = form;
      c.hidden = 4;
      c.normalizer = normalizer;
      if (traits_of(normalizer.kind).takes_scale) c.scale = ScaleForm::both;
      INFO(describe(c));
      // Second derivatives jump when an entmax key comes near its threshold.
      const double factor = normalizer.kind == NormalizerKind::entmax ? 10 : 1;
      CHECK(difference_error(with_gradients(c), 20) < factor * kDifferenceTolerance);
    }
  }
}

/// Every T with every base (half of these pairs) and form. Dimensions, heads, sequences, scales,
/// documents and windows cycle with different periods.
template <class F>
void for_mix_cases(F&& f) {
  constexpr int64_t kHeads[][2] = {{1, 1}, {4, 2}, {6, 1}, {3, 3}, {5, 5}};
  constexpr int64_t kHidden[] = {4, 7, 32, 16};
  constexpr int64_t kDimensions[] = {6, 16, 64, 48};
  constexpr int64_t kWindows[] = {0, 5, 64, 70, 0, 1, 0};
  constexpr int64_t kT[] = {1, 2, 17, 64, 65, 130, 300};
  const std::vector<TableForm> all = bases();
  size_t n = 0;
  for (size_t row = 0; row < std::size(kT); ++row) {
    for (size_t column = 0; column < all.size(); ++column) {
      if (!is_run(row, column, 2)) continue;
      const int64_t T = kT[row];
      const TableForm base = all[column];
      for (const MixForm form : kMixForms) {
        AttentionCase c;
        c.T = T;
        c.table = base;
        c.mix = form;
        c.hidden = kHidden[n % 4];
        c.H = kHeads[n % 5][0];
        c.K = kHeads[n % 5][1];
        c.B = 1 + static_cast<int64_t>(n / 4 % 3);
        c.D = kDimensions[n / 3 % 4];
        c.scale = kScaleForms[n / 2 % 3];
        c.documents = n / 3 % 2 == 1;
        c.window = kWindows[n % 7];
        c.zero_scale = n / 2 % 4 == 1;
        c.own_rows = true;
        if (n % 5 == 3) c.content_scale = 0.5 / std::sqrt(static_cast<double>(c.D));
        if (T > 200) c.B = 1;  // to save time
        ++n;
        INFO(describe(c));
        f(c);
      }
    }
  }
}

TEST_CASE("mixed heads on the CPU agree with the reference over shapes, forms and masks") {
  for (const Dtype t : {Dtype::f32, Dtype::bf16}) {
    for_mix_cases(
        [t](const AttentionCase& c) { compare_with_reference(attention(c), t, mix_tolerance(c)); });
  }
}

TEST_CASE("mixed heads on the CPU agree with the reference under every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& normalizer : every_normalizer({entmax(1.5, true)})) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
      c.B = 2;
      c.T = n % 2 == 0 ? 70 : 200;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      c.mix = form;
      c.table = bases()[n % bases().size()];
      c.content = n % 3 == 0 ? 4 : 1;
      c.normalizer = normalizer;
      c.documents = n % 2 == 1;
      if (traits_of(normalizer.kind).takes_scale) c.scale = kScaleForms[n % 3];
      ++n;
      INFO(describe(c));
      compare_with_reference(attention(c), Dtype::f32, 2 * normalizer_tolerance(c));
    }
  }
}

TEST_CASE("rows of mixed heads on the CPU agree with the reference: the last, and all of them") {
  for_mix_cases([](const AttentionCase& c) {
    if (c.T < 2) return;
    compare_with_reference(attention_of_last_rows(c, std::min<int64_t>(c.T - 1, 5)), Dtype::f32,
                           mix_tolerance(c));
    compare_with_reference(attention_statistics(c), Dtype::f32, 4 * mix_tolerance(c));
    if (c.scale != ScaleForm::none) return;
    compare_with_reference(attention_entropy(c), Dtype::f32, 4 * mix_tolerance(c));
  });
}

TEST_CASE("mixed heads have the same bits on any number of threads") {
  for (const TableForm base : {TableForm::falling, TableForm::log_square, TableForm::fire}) {
    AttentionCase c;
    c.B = 3;
    c.T = 300;
    c.H = 4;
    c.K = 2;
    c.D = 16;
    c.table = base;
    c.scale = ScaleForm::both;
    c.mix = MixForm::concat_residual;
    c.own_rows = true;
    INFO(describe(c));
    CHECK(same_for_any_threads(attention(c), Dtype::f32));
    const Operation last = attention_of_last_rows(c, 3);
    std::vector<double> out;
    for (const int threads : {1, 2, 3, 4}) {
      const Threads limit(threads);
      Machine cpu(Dtype::f32);
      const Values found = last.forward(cpu, last.inputs).at("out");
      if (out.empty()) out = found.x;
      check_equal(found.x, out);
    }
  }
}

TEST_CASE("a network of zeros leaves its base, and where that is no part of the logits, none") {
  for (const TableForm base : bases()) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
      c.T = 70;
      c.H = c.K = 3;
      c.table = base;
      AttentionCase mixed = c;
      mixed.mix = form;
      if (form == MixForm::concat) c.table = TableForm::none;
      Arrays in = attention(mixed).inputs;
      for (const char* name : {"w2", "c2"}) {
        for (double& x : in.at(name).x) x = 0;
      }
      INFO(describe(mixed));
      Machine reference(Dtype::f64), cpu(Dtype::f32);
      check_equal(attention(mixed).forward(reference, in).at("out").x,
                  attention(c).forward(reference, in).at("out").x);
      check_close("out", attention(mixed).forward(cpu, in).at("out"),
                  attention(c).forward(reference, in).at("out"), mix_tolerance(mixed));
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

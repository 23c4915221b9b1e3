// Attention with mixed heads: finite differences of the reference, the CPU backend compared with
// it, and a network of zeros.

#include <algorithm>
#include <iterator>
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

TEST_CASE("the adjoint of mixed heads agrees with finite differences") {
  size_t n = 0;
  for (const TableForm base : bases()) {
    for (const MixForm form : kMixForms) {
      if (base == TableForm::none && form == MixForm::bias_only) continue;  // a constant
      for (const ScaleForm scale : kScaleForms) {
        AttentionCase c = turning_case(n, 9, base);
        c.B = 2;
        c.H = 4;
        c.K = n % 2 == 0 ? 2 : 4;
        c.D = 6;
        c.scale = scale;
        c.documents = n / 2 % 2 == 1;
        c.mix = form;
        c.hidden = 5;
        c.zero_scale = n++ % 5 == 3;
        INFO(describe(c));
        check_differences(attention(c), 20);
      }
    }
  }
}

TEST_CASE("the adjoint of mixed heads agrees with finite differences under every normalizer") {
  for (const NormalizerForm& normalizer : one_of_every_normalizer({entmax(1.5, true)})) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
      c.B = 1;
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
      check_differences(attention(c), 20, factor * kDifferenceTolerance);
    }
  }
}

/// Every T with every base (half of these pairs) and form.
template <class F>
void for_mix_cases(F&& f) {
  constexpr int64_t kHidden[] = {4, 7, 32, 16};
  constexpr int64_t kT[] = {1, 2, 17, 64, 65, 130, 300};
  const std::vector<TableForm> all = bases();
  size_t n = 0;
  for (size_t row = 0; row < std::size(kT); ++row) {
    for (size_t column = 0; column < all.size(); ++column) {
      if (!is_run(row, column, 2)) continue;
      for (const MixForm form : kMixForms) {
        AttentionCase c = turning_case(n + n / 4 * 3, kT[row], all[column]);
        c.scale = kScaleForms[(n + n / 12) % 3];
        c.mix = form;
        c.hidden = kHidden[n++ / 3 % 4];
        c.own_rows = true;
        if (c.T > 200) c.B = 1;  // to save time
        INFO(describe(c));
        f(c);
      }
    }
  }
}

TEST_CASE("mixed heads on the CPU agree with the reference over shapes, forms and masks") {
  for_mix_cases(
      [](const AttentionCase& c) { compare_with_reference(attention(c), mix_tolerance(c)); });
}

TEST_CASE("mixed heads on the CPU agree with the reference under every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& normalizer : every_normalizer({entmax(1.5, true)})) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
      c.T = n % 2 == 0 ? 70 : 200;
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

// A strip has 32 rows above 1,024 keys and 16 above 2,048: several, the last one shorter.
TEST_CASE("strips of mixed heads after a long past agree with the reference, on any threads") {
  for (const auto& [T, rows] : {std::pair<int64_t, int64_t>{1000, 70}, {1100, 70}, {2100, 37}}) {
    for (const TableForm base : {TableForm::falling, TableForm::log_square, TableForm::fire}) {
      AttentionCase c;
      c.T = T;
      c.B = T > 1100 ? 1 : 2;
      c.table = base;
      c.window = base == TableForm::fire ? 40 : 0;
      c.documents = base == TableForm::log_square;
      c.mix = MixForm::concat_residual;
      const Operation op = attention_of_last_rows(c, rows);
      INFO(describe(c));
      compare_with_reference(op, Dtype::f32, mix_tolerance(c));
      if (T == 1100) check_same_for_any_threads(op, Dtype::f32);
    }
  }
}

TEST_CASE("mixed heads have the same bits on any number of threads") {
  for (const TableForm base : {TableForm::falling, TableForm::log_square, TableForm::fire}) {
    AttentionCase c;
    c.B = 3;
    c.T = 300;
    c.table = base;
    c.scale = ScaleForm::both;
    c.mix = MixForm::concat_residual;
    c.own_rows = true;
    INFO(describe(c));
    check_same_for_any_threads(attention(c), Dtype::f32);
    check_same_for_any_threads(attention_of_last_rows(c, 3), Dtype::f32);
  }
}

TEST_CASE("a network of zeros leaves its base, and where that is no part of the logits, none") {
  for (const TableForm base : bases()) {
    for (const MixForm form : kMixForms) {
      AttentionCase c;
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

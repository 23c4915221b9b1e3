// Attention over many shapes and forms: the reference beside dense rows and finite differences, and
// the CPU backend compared with the reference.

#include <iterator>

#include "attention_case.h"
#include "catch.h"
#include "dense_attention.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

/// Every T with every D (a third of these pairs) in every form of table and scale.
template <class F>
void for_attention_cases(F&& f) {
  constexpr int64_t kT[] = {1, 2, 17, 63, 64, 65, 130, 200};
  constexpr int64_t kD[] = {6, 8, 16, 20, 48, 64, 80, 128};
  size_t n = 0;
  for (size_t row = 0; row < std::size(kT); ++row) {
    for (size_t column = 0; column < std::size(kD); ++column) {
      if (!is_run(row, column, 3)) continue;
      for (TableForm table : table_forms_and({TableForm::falling})) {
        for (ScaleForm scale : kScaleForms) {
          AttentionCase c = turning_case(n + n / 24, kT[row], table);  // of 24 forms
          c.D = kD[column];
          c.scale = scale;
          if (c.T >= 130 && c.D >= 80 && n % 3 != 0) c.B = 1;  // to save time
          ++n;
          INFO(describe(c));
          f(c);
        }
      }
    }
  }
}

TEST_CASE("attention on the CPU agrees with the reference over shapes, forms and masks") {
  for_attention_cases(
      [](const AttentionCase& c) { compare_with_reference(attention(c), fp32_tolerance(c)); });
}

// With t (s + b) and b = -1e4, a step of 1e-5 from t = 0 changes the logit by 0.1.
TEST_CASE("the adjoint of attention agrees with finite differences") {
  for (bool causal : {true, false}) {
    for (TableForm table : table_forms_and({causal ? TableForm::self : TableForm::falling})) {
      if (!causal && table == TableForm::contextual) continue;
      for (ScaleForm scale : kScaleForms) {
        for (int masked = 0; masked < (causal ? 6 : 7); ++masked) {
          AttentionCase c;
          c.causal = causal;
          c.T = 17;
          c.D = 6;
          c.table = table;
          c.scale = scale;
          c.documents = masked < 3;
          c.padding = masked == 6;
          c.window = masked % 3 == 1 ? 1 : masked % 3 == 2 ? 5 : 0;
          if (c.window == 5) c.K = 1;
          c.zero_scale = c.window == 5 && table != TableForm::self;
          c.positions = c.window == 5 ? 64 : 4;
          if (c.documents) c.content_scale = 0.7;
          INFO(describe(c));
          check_differences(attention(c), 30);
        }
      }
    }
  }
}

TEST_CASE("the adjoint of attention agrees with finite differences across tiles") {
  AttentionCase c;
  c.H = c.K = 2;
  c.D = 8;
  c.table = TableForm::falling;
  for (ScaleForm scale : {ScaleForm::both, ScaleForm::content}) {
    c.scale = scale;
    c.documents = scale == ScaleForm::content;
    check_differences(attention(c), 20);
  }
}

}  // namespace
}  // namespace bamtrain::testing

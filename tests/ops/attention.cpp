// Attention over many shapes and forms: finite differences of the reference, and the CPU backend
// compared with the reference.

#include <cmath>
#include <iterator>
#include <vector>

#include "attention_case.h"
#include "catch.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

using Tables = std::vector<TableForm>;
const Tables kTables = {TableForm::none, TableForm::table, TableForm::falling};
constexpr int64_t kPositions[] = {64, 5, 17, 2};

/// The forms of bias that are not tables.
Tables other_forms() {
  Tables all;
  for (TableForm form : kTableForms) {
    if (form != TableForm::none && form != TableForm::table) all.push_back(form);
  }
  return all;
}

/// Every T with every D (a third of these pairs) in every form of table and scale. Heads,
/// sequences, documents and windows cycle with different periods, so that any two combine.
template <class F>
void for_attention_cases(const Tables& tables, F&& f) {
  constexpr int64_t kT[] = {1, 2, 17, 63, 64, 65, 130, 200};
  constexpr int64_t kD[] = {6, 8, 16, 20, 48, 64, 80, 128};
  size_t n = 0;
  for (size_t row = 0; row < std::size(kT); ++row) {
    for (size_t column = 0; column < std::size(kD); ++column) {
      if (!is_run(row, column, 3)) continue;
      const int64_t T = kT[row], D = kD[column];
      for (TableForm table : tables) {
        for (ScaleForm scale : kScaleForms) {
          AttentionCase c;
          c.T = T;
          c.D = D;
          c.table = table;
          c.scale = scale;
          c.H = kTurningHeads[n % 4][0];
          c.K = kTurningHeads[n % 4][1];
          c.B = 1 + static_cast<int64_t>(n / 4 % 3);
          c.documents = n / 3 % 2 == 1;
          c.window = kTurningWindows[n / 5 % 6];
          c.zero_scale = n / 2 % 4 == 1;
          c.own_rows = reads_content(table);
          c.positions = kPositions[n / 3 % 4];
          if (n % 5 == 3) c.content_scale = 0.5 / std::sqrt(static_cast<double>(D));
          if (T >= 130 && D >= 80 && n % 3 != 0) c.B = 1;  // to save time
          ++n;
          INFO(describe(c));
          f(c);
        }
      }
    }
  }
}

TEST_CASE("attention on the CPU agrees with the reference over shapes, forms and masks, in fp32") {
  for (const Tables& tables : {kTables, other_forms()}) {
    for_attention_cases(tables, [](const AttentionCase& c) {
      compare_with_reference(attention(c), Dtype::f32, fp32_tolerance(c));
    });
  }
}

TEST_CASE("attention on the CPU agrees with the reference over shapes, forms and masks, in bf16") {
  for (const Tables& tables : {kTables, other_forms()}) {
    for_attention_cases(tables, [](const AttentionCase& c) {
      compare_with_reference(attention(c), Dtype::bf16, fp32_tolerance(c));
    });
  }
}

TEST_CASE("the adjoint of attention agrees with finite differences") {
  for (TableForm table : table_forms_and({TableForm::self})) {
    for (ScaleForm scale : kScaleForms) {
      for (bool documents : {false, true}) {
        for (int64_t window : {0, 1, 5}) {
          AttentionCase c;
          c.B = 2;
          c.T = 17;
          c.H = 4;
          c.K = window == 5 ? 1 : 2;
          c.D = 6;
          c.table = table;
          c.scale = scale;
          c.documents = documents;
          c.window = window;
          // With t (s + b) and b = -1e4, a step of 1e-5 from t = 0 changes the logit by 0.1.
          c.zero_scale = window == 5 && table != TableForm::self;
          if (table == TableForm::fire) continue;  // "of_u" is not an input's gradient
          c.positions = window == 5 ? 64 : 4;
          if (documents) c.content_scale = 0.7;
          INFO(describe(c));
          CHECK(difference_error(attention(c), 30) < kDifferenceTolerance);
        }
      }
    }
  }
}

TEST_CASE("the adjoint of attention agrees with finite differences across tiles") {
  AttentionCase c;
  c.T = 70;
  c.H = c.K = 2;
  c.D = 8;
  c.table = TableForm::falling;
  c.scale = ScaleForm::both;
  CHECK(difference_error(attention(c), 20) < kDifferenceTolerance);
  c.documents = true;
  c.scale = ScaleForm::content;
  CHECK(difference_error(attention(c), 20) < kDifferenceTolerance);
}

}  // namespace
}  // namespace bamtrain::testing

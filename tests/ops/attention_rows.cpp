// Attention of the last rows to all keys equals those rows of full attention.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attention_case.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

/// Calls f(case, n) for every T in every form.
template <class F>
void for_last_rows(F&& f) {
  size_t n = 0;
  for (int64_t T : {2, 17, 64, 65, 130, 200}) {
    for (TableForm form : table_forms_and({TableForm::falling})) {
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c = turning_case(n + n / 24, T, form);  // of 24 forms
        c.scale = scale;
        const int64_t rows =
            std::min<int64_t>(T - 1, n % 5 == 0 ? 33 : static_cast<int64_t>(n % 5));
        ++n;
        INFO(describe(c) << ", the last " << rows << " rows");
        f(c, rows);
      }
    }
  }
}

TEST_CASE("the last rows alone are those of all rows, to the bit in the reference") {
  Machine reference(Dtype::f64);
  for_last_rows([&](const AttentionCase& c, int64_t n) {
    const Operation all = attention(c), last = attention_of_last_rows(c, n);
    const Arrays truth = all.forward(reference, all.inputs);
    const Arrays found = last.forward(reference, last.inputs);
    check_equal(found.at("out").x, last_of(truth.at("out"), 1, n).x);
    check_equal(found.at("lse").x, last_of(truth.at("lse"), 2, n).x);
    if (c.scale != ScaleForm::none) return;
    const Operation entropy = attention_entropy(c);
    const Values of_all = entropy.forward(reference, entropy.inputs).at("entropy");
    check_equal(found.at("entropy").x, last_of(of_all, 2, n).x);
  });
}

TEST_CASE("the last rows alone on the CPU agree with the reference") {
  for_last_rows([&](const AttentionCase& c, int64_t n) {
    compare_with_reference(attention_of_last_rows(c, n), fp32_tolerance(c));
  });
}

TEST_CASE("pieces of several tiles, past several blocks of keys, agree with the reference") {
  size_t n = 0;
  for (const auto& [T, rows] : {std::pair<int64_t, int64_t>{1100, 64}, {1400, 130}, {2200, 97}}) {
    for (const TableForm form :
         {TableForm::none, TableForm::table, TableForm::difference, TableForm::log_square}) {
      AttentionCase c;
      c.T = T;
      c.B = 1 + static_cast<int64_t>(n % 2);
      c.D = 24;
      c.table = form;
      c.scale = kScaleForms[n % 3];
      c.documents = n % 4 == 3;
      c.window = n % 5 == 2 ? 300 : 0;
      ++n;
      INFO(describe(c) << ", the last " << rows << " rows");
      compare_with_reference(attention_of_last_rows(c, rows), fp32_tolerance(c));
    }
  }
}

TEST_CASE("the last rows alone have the same bits on any number of threads") {
  AttentionCase c;
  c.B = 1;
  c.H = 6;
  c.K = 3;
  c.D = 48;
  c.table = TableForm::falling;
  // Of 300 rows a head has two tasks, and their keys are several blocks.
  for (const auto& [T, rows] : {std::pair<int64_t, int64_t>{130, 7}, {130, 100}, {1500, 300}}) {
    c.T = T;
    for (const Dtype t : {Dtype::f32, Dtype::bf16}) {
      check_same_for_any_threads(attention_of_last_rows(c, rows), t);
    }
  }
}

TEST_CASE("a logit that is no number reaches its row of the last rows, and no other") {
  for (const TableForm form : {TableForm::none, TableForm::table, TableForm::log_square}) {
    AttentionCase c;
    c.B = 1;
    c.table = form;
    for (const int64_t rows : {3, 20}) {
      const Operation op = attention_of_last_rows(c, rows);
      Arrays in = op.inputs;
      // The second row of head 0.
      in.at("q").x[static_cast<size_t>((c.T - rows + 1) * c.H * c.D)] = NAN;
      Machine cpu(Dtype::f32);
      const Values out = op.forward(cpu, in).at("out");
      for (size_t i = 0; i < out.x.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / c.D;  // (row, head)
        INFO("element " << i << " of " << rows << " rows");
        CHECK(std::isnan(out.x[i]) == (row == 1 * c.H));
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

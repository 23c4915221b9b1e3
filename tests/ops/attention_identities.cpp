// Invariants of attention on every backend, and its behaviour at extreme values.

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_case.h"
#include "catch.h"
#include "dense_attention.h"

namespace bamtrain::testing {
namespace {

constexpr Dtype kDtypes[] = {Dtype::f64, Dtype::f32, Dtype::bf16};

double tolerance_of(Dtype t) {
  if (t == Dtype::f64) return 1e-12;
  // Sums of up to a few hundred terms. bf16 adds one rounding of each result, and the adjoint reads
  // the rounded `out`.
  return t == Dtype::f32 ? 100 * kF32 : 4 * kBf16;
}

AttentionCase long_case() {
  AttentionCase c;
  c.T = 150;
  c.D = 20;
  c.table = TableForm::table;
  c.scale = ScaleForm::content;
  c.documents = true;
  return c;
}

TEST_CASE("a constant added to the table changes the log-sum alone") {
  for (Dtype t : kDtypes) {
    for (ScaleForm scale : kScaleForms) {
      AttentionCase c = long_case();
      c.scale = scale;
      Operation op = attention(c);
      const Pass before = run(op, t);
      for (double& b : op.inputs["table"].x) b += 3;
      const Pass after = run(op, t);
      INFO(describe(c));
      for (const auto& [name, v] : before.gradients) {
        const auto n = static_cast<double>(c.T);
        // dscale of t (s + b) contains sums of dz b.
        check_close(name, after.gradients.at(name), v, 4 * tolerance_of(t), 1 / std::sqrt(n));
      }
      check_close("out", after.results.at("out"), before.results.at("out"), tolerance_of(t));
      Values lse = before.results.at("lse");
      for (size_t i = 0; i < lse.x.size(); ++i) {
        lse.x[i] += 3 * (scale == ScaleForm::both ? op.inputs["scale"].x[i] : 1);
      }
      check_close("lse", after.results.at("lse"), lse, t == Dtype::f64 ? 1e-12 : 100 * kF32);
    }
  }
}

// A row of dz is visible in the gradient of what is added to the logits, if no other row has a
// cotangent. It is the gradient of the table by distance, and of sums by key, minus its sum by
// query. So the error from rounding `out` in a row appears in the gradient of a table, but not in
// that of sums.
TEST_CASE("every row of dz sums to zero, and with all rows the gradient of each head's bias") {
  for (Dtype t : kDtypes) {
    for (TableForm table : {TableForm::table, TableForm::difference}) {
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c = long_case();
        c.table = table;
        c.scale = scale;
        c.documents = false;
        Operation op = attention(c);
        const Values all = random_values(Role::activation, op.inputs.at("q").shape, "dout");
        for (int64_t row : {-1, 1, 63, 64, 149}) {
          // Of all rows, or of one of the first sequence.
          Values& dout = op.cotangents["out"];
          dout = all;
          for (size_t e = 0; row >= 0 && e < dout.x.size(); ++e) {
            if (static_cast<int64_t>(e) / (c.H * c.D) != row) dout.x[e] = 0;
          }
          const Pass pass = run(op, t);
          const std::vector<double>& d = pass.gradients.at(has_sums(c) ? "numbers" : "table").x;
          for (size_t begin = 0; begin < d.size(); begin += static_cast<size_t>(c.T)) {
            double sum = 0, size = 0;
            for (size_t i = begin; i < begin + static_cast<size_t>(c.T); ++i) {
              sum += d[i];
              size += std::abs(d[i]);
            }
            INFO(describe(c) << ", row " << row << " in " << name_of(t));
            const bool second = begin >= static_cast<size_t>(c.H * c.T);
            CHECK((size > 0.01) == (row < 0 || !second));
            const bool by_query = has_sums(c) && t == Dtype::bf16;
            CHECK(std::abs(sum) <= tolerance_of(by_query ? Dtype::f32 : t) * size);
          }
        }
      }
    }
  }
}

TEST_CASE("the gradient of t times t is that of q times q, row by row, where t scales content") {
  for (Dtype t : kDtypes) {
    const AttentionCase c = long_case();
    const Operation op = attention(c);
    const Pass pass = run(op, t);
    Values by_scale = op.inputs.at("scale"), by_query = by_scale;
    for (int64_t b = 0; b < c.B; ++b) {
      for (int64_t i = 0; i < c.T; ++i) {
        for (int64_t h = 0; h < c.H; ++h) {
          const auto row = static_cast<size_t>((b * c.H + h) * c.T + i);
          by_scale.x[row] *= pass.gradients.at("scale").x[row];
          double& dot = by_query.x[row] = 0;
          for (int64_t d = 0; d < c.D; ++d) {
            const auto e = static_cast<size_t>(((b * c.T + i) * c.H + h) * c.D + d);
            dot += op.inputs.at("q").x[e] * pass.gradients.at("q").x[e];
          }
        }
      }
    }
    check_close("t dt", by_scale, by_query, 2 * tolerance_of(t));
  }
}

TEST_CASE("a content scale is a factor of the queries, to the bit") {
  for (Dtype t : kDtypes) {
    Machine m(t);
    for (TableForm table : kTableForms) {
      if (reads_content(table)) continue;  // queries also contribute to its bias
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c = long_case();
        c.D = 16;
        c.table = table;
        c.scale = scale;
        check_content_scale(m, c);
        if (t == Dtype::f64) continue;
        // Rows after past keys.
        AttentionCase scaled = c;
        scaled.content_scale = 1;
        Arrays in = attention(c).inputs, larger = in;
        for (double& x : larger.at("q").x) x *= 4;
        const Arrays truth = attention_of_last_rows(c, 3).forward(m, larger);
        const Arrays found = attention_of_last_rows(scaled, 3).forward(m, in);
        for (const auto& [name, v] : truth) check_equal(found.at(name).x, v.x);
      }
    }
  }
}

TEST_CASE("documents packed into one sequence give what each gives alone, dead tiles or not") {
  AttentionCase c;
  c.B = 1;
  c.T = 500;
  c.D = 24;
  c.table = TableForm::falling;
  c.documents = true;
  const std::vector<int32_t> first = first_keys(c);
  Operation op = attention(c);
  for (Dtype t : kDtypes) {
    Machine m(t);
    op.inputs = round_to(op.inputs, m);
    const Arrays packed = op.forward(m, op.inputs);
    const Arrays dout{{"out", packed.at("out")}};
    const Arrays gradients = op.adjoint(m, op.inputs, packed, dout, 0);
    Values dtable = constant_values(Role::parameter, {c.H, c.T}, 0);
    int64_t documents = 0;
    for (int64_t begin = 0, end = 0; begin < c.T; begin = end) {
      for (end = begin; end < c.T && first[static_cast<size_t>(end)] == begin;) ++end;
      ++documents;
      AttentionCase one = c;
      one.T = end - begin;
      one.documents = false;
      const auto part = [&](const Values& v, int64_t width) {
        return Values{v.role,
                      {1, one.T, width / c.D, c.D},
                      {v.x.begin() + begin * width, v.x.begin() + end * width}};
      };
      const int64_t Q = c.H * c.D, K = c.K * c.D;
      Operation alone = attention(one);
      alone.inputs["q"] = part(op.inputs["q"], Q);
      alone.inputs["k"] = part(op.inputs["k"], K);
      alone.inputs["v"] = part(op.inputs["v"], K);
      const Arrays results = alone.forward(m, alone.inputs);
      const Arrays d =
          alone.adjoint(m, alone.inputs, results, {{"out", part(dout.at("out"), Q)}}, 0);
      const double tolerance = tolerance_of(t);
      check_close("out", part(packed.at("out"), Q), results.at("out"), tolerance);
      check_close("dq", part(gradients.at("q"), Q), d.at("q"), tolerance, 0.1);
      check_close("dk", part(gradients.at("k"), K), d.at("k"), tolerance, 0.1);
      check_close("dv", part(gradients.at("v"), K), d.at("v"), tolerance);
      for (int64_t h = 0; h < c.H; ++h) {
        for (int64_t i = 0; i < one.T; ++i) {
          dtable.x[static_cast<size_t>(h * c.T + i)] +=
              d.at("table").x[static_cast<size_t>(h * one.T + i)];
        }
      }
    }
    CHECK(documents > 20);
    check_close("dtable", gradients.at("table"), dtable, tolerance_of(t));
  }
}

TEST_CASE("long sequences with small windows skip tiles and lose nothing") {
  for (int64_t window : {1, 5, 64, 70}) {
    AttentionCase c;
    c.B = c.H = c.K = 1;
    c.T = 1000;
    c.window = window;
    c.table = TableForm::table;
    c.scale = ScaleForm::both;
    INFO(describe(c));
    compare_with_reference(attention(c), 100 * kF32);
  }
}

TEST_CASE("a row that sees one key returns its value and sends no gradient through the logit") {
  for (TableForm table : {TableForm::none, TableForm::table, TableForm::self}) {
    for (ScaleForm scale : kScaleForms) {
      for (Dtype t : kDtypes) {
        AttentionCase c = long_case();
        c.H = c.K = 3;
        c.window = 1;
        c.table = table;
        c.scale = scale;
        Operation op = attention(c);
        Machine m(t);
        op.inputs = round_to(op.inputs, m);
        const Values dout = random_values(Role::activation, op.inputs.at("v").shape, "dout");
        op.cotangents = round_to({{"out", dout}}, m);
        const Pass pass = run(op, m);
        INFO(describe(c) << " in " << name_of(t));
        check_equal(pass.results.at("out").x, op.inputs.at("v").x);
        for (const auto& [name, v] : pass.gradients) {
          if (name == "v") continue;
          CHECK(std::count(v.x.begin(), v.x.end(), 0.0) == static_cast<int64_t>(v.x.size()));
        }
        check_equal(pass.gradients.at("v").x, op.cotangents.at("out").x);
      }
    }
  }
}

TEST_CASE("t = 0 makes the row the mean of the values it sees") {
  for (Dtype t : kDtypes) {
    AttentionCase c = long_case();
    c.scale = ScaleForm::both;
    Operation op = attention(c);
    std::fill(op.inputs["scale"].x.begin(), op.inputs["scale"].x.end(), 0.0);
    Machine m(t);
    op.inputs = round_to(op.inputs, m);
    const Pass pass = run(op, m);
    check_close("out", pass.results.at("out"), dense_attention(c, op.inputs).at("out"),
                tolerance_of(t));
    for (const char* name : {"q", "k", "table"}) {
      const std::vector<double>& g = pass.gradients.at(name).x;
      CHECK(std::count(g.begin(), g.end(), 0.0) == static_cast<int64_t>(g.size()));
    }
    compare_with_reference(op, t == Dtype::bf16 ? Dtype::bf16 : Dtype::f32, 100 * kF32);
  }
}

TEST_CASE("tables bounded at -1e4 hide keys without spoiling the others") {
  for (ScaleForm scale : kScaleForms) {
    AttentionCase c = long_case();
    c.scale = scale;
    c.table = TableForm::bounded;
    INFO(describe(c));
    compare_with_reference(attention(c), 100 * kF32);
    // If all keys of a row are at -1e4, its fp32 logits have an error of 4e-4 (half a unit in the
    // last place), times t up to 3. Probabilities and gradients are off by as much.
    c.table = TableForm::self;
    Operation op = attention(c);
    // The gradient of t in t (s + b) multiplies dz by b = -1e4, and relies on dz summing to zero.
    if (scale == ScaleForm::both) op.cancelling["scale"] = 1e4;
    compare_with_reference(op, 4e-3);
  }
}

TEST_CASE("logits of 1e4 give the hard maximum and finite gradients") {
  for (ScaleForm scale : {ScaleForm::none, ScaleForm::content}) {
    AttentionCase c = long_case();
    c.scale = scale;
    c.table = TableForm::none;
    c.content = 1e4;
    INFO(describe(c));
    // At t = 3, a logit of size 1e4 t has an error of 0.3 sqrt(D) u 1e4 t = 3e-3 (linear.cpp), at
    // worst three times that. This affects the few rows whose two largest logits are that close.
    compare_with_reference(attention(c), 1e-2);
  }
}

TEST_CASE("a key that is NaN reaches every row that sees it and no other") {
  AttentionCase c;
  c.B = c.K = 1;
  c.T = 80;
  for (int64_t key : {0, 15, 47, 56, 63, 64}) {
    // Key 56 lies where a maximum over lanes meets the largest logit, of key 0. With a window row
    // 79 sees of the first 64 keys only key 63.
    const bool sink = key == 56;
    c.window = sink ? 0 : 17;
    const std::vector<int32_t> first = first_keys(c);
    Operation op = attention(c);
    if (sink) {
      std::vector<double>&q = op.inputs["q"].x, &k = op.inputs["k"].x;
      for (size_t n = 0; n < q.size(); n += static_cast<size_t>(c.D)) q[n] = 4;
      for (int64_t n = 0; n < c.K * c.D; n += c.D) k[static_cast<size_t>(n)] = 40;
    }
    op.inputs["k"].x[static_cast<size_t>(key * c.D + 3)] = std::numeric_limits<double>::quiet_NaN();
    for (Dtype t : kDtypes) {
      for (CpuIsa isa : kCpuIsas) {
        Machine m(t, isa);
        const std::vector<double> out = op.forward(m, op.inputs).at("out").x;
        int64_t wrong = 0;
        for (int64_t i = 0; i < c.T; ++i) {
          const bool sees = first[static_cast<size_t>(i)] <= key && key <= i;
          for (int64_t e = i * c.H * c.D; e < (i + 1) * c.H * c.D; ++e) {
            wrong += std::isnan(out[static_cast<size_t>(e)]) != sees;
          }
        }
        INFO("key " << key << " in " << name_of(t) << ", " << m.backend().name());
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("q, k, v in blocks of their own give the bits that they give inside qkv") {
  AttentionCase c = long_case();
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    c.apart = false;
    const Pass inside = run(attention(c), t);
    c.apart = true;
    check_same(run(attention(c), t), inside);
  }
}

}  // namespace
}  // namespace bamtrain::testing

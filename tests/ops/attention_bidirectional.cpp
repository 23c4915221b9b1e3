// Attention whose rows see keys on both sides: finite differences of the reference, and the CPU
// backend compared with the reference.

#include <vector>

#include "attention_case.h"
#include "catch.h"
#include "normalizer_forms.h"

namespace bamtrain::testing {
namespace {

/// Every form of bias that has a formula for keys after the query.
std::vector<TableForm> two_sided_forms() {
  std::vector<TableForm> all = table_forms_and({TableForm::falling});
  std::erase(all, TableForm::contextual);
  return all;
}

TEST_CASE("bidirectional attention on the CPU agrees with the reference over shapes and forms") {
  size_t n = 0;
  for (int64_t T : {1, 17, 64, 65, 130, 200}) {
    for (int64_t D : {6, 20, 64}) {
      for (TableForm table : two_sided_forms()) {
        AttentionCase c = turning_case(n, T, table);
        c.causal = false;
        c.D = D;
        c.scale = kScaleForms[(n + n / 6) % 3];
        c.documents = n / 3 % 3 == 1;
        c.padding = n++ / 2 % 3 == 1;
        INFO(describe(c));
        compare_with_reference(attention(c), fp32_tolerance(c));
      }
    }
  }
}

/// The normalizers that have a formula for keys after the query, and more forms of them.
std::vector<NormalizerForm> normalizers() {
  std::vector<NormalizerForm> all = every_normalizer({entmax(1.5, true), topk(4)});
  std::erase_if(all, [](const NormalizerForm& f) { return traits_of(f.kind).causal_only; });
  return all;
}

AttentionCase case_of(const NormalizerForm& form, size_t n, int64_t T) {
  const std::vector<TableForm> tables = two_sided_forms();
  AttentionCase c;
  c.causal = false;
  c.T = T;
  c.K = n % 2 == 0 ? 2 : 4;
  c.D = n % 3 == 0 ? 16 : 6;
  c.table = tables[n % tables.size()];
  c.scale = kScaleForms[n / 2 % 3];
  c.documents = n / 2 % 3 == 0;
  c.padding = n / 2 % 3 == 1;
  c.window = n % 7 == 3 ? 33 : 0;
  c.content = 1 + static_cast<double>(n % 3);
  c.normalizer = form;
  c.own_rows = true;
  return c;
}

TEST_CASE("bidirectional attention on the CPU agrees with the reference, with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : normalizers()) {
    for (const int64_t T : {2, 17, 65, 200}) {
      for (int turn = 0; turn < 2; ++turn) {
        const AttentionCase c = case_of(form, n++, T);
        INFO(describe(c));
        compare_with_reference(attention(c), Dtype::f32, normalizer_tolerance(c));
      }
    }
  }
}

TEST_CASE("the adjoint of bidirectional attention has finite differences with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : one_of_every_normalizer({entmax(1.5, true), topk(4)})) {
    if (traits_of(form.kind).causal_only) continue;
    for (const TableForm table : two_sided_forms()) {
      if (table == TableForm::fire) continue;  // steps of its lines cross thresholds
      AttentionCase c = case_of(form, n++, 12);
      c.D = 6;
      c.table = table;
      c.content = 1;
      INFO(describe(c));
      // Second derivatives jump when an entmax key comes near its threshold.
      const double factor = form.kind == NormalizerKind::entmax ? 10 : 1;
      check_differences(attention(c), 20, factor * kDifferenceTolerance);
    }
  }
}

TEST_CASE("bidirectional mixed heads: finite differences, and the CPU beside the reference") {
  size_t n = 0;
  for (const TableForm table : two_sided_forms()) {
    if (reads_content(table)) continue;
    for (const MixForm form :
         {MixForm::concat, MixForm::concat_residual, MixForm::add_residual, MixForm::bias_only}) {
      if (table == TableForm::none && form == MixForm::bias_only) continue;  // a constant
      for (const int64_t T : {9, 65, 130}) {
        AttentionCase c = case_of({}, n++, T);
        c.content = 1;
        c.table = table;
        c.B = T > 100 ? 1 : 2;  // fewer logits leave room for a kink far from all
        c.mix = form;
        c.hidden = n % 2 == 0 ? 5 : 32;
        INFO(describe(c));
        compare_with_reference(attention(c), Dtype::f32, mix_tolerance(c));
        if (T == 9) check_differences(attention(c), 20);
      }
    }
  }
}

TEST_CASE("entropy and statistics of bidirectional attention agree with the reference") {
  size_t n = 0;
  for (const NormalizerForm& form : normalizers()) {
    if (form.kind == NormalizerKind::entmax)
      continue;  // attention_statistics.cpp has their tolerances
    for (const int64_t T : {17, 130}) {
      for (size_t turn = 0; turn < two_sided_forms().size(); ++turn) {
        AttentionCase c = case_of(form, n++, T);
        if (n % 4 == 0 && !reads_content(c.table)) c.mix = MixForm::concat_residual;
        INFO(describe(c));
        const double tolerance = 8 * (c.mix ? mix_tolerance(c) : fp32_tolerance(c));
        compare_with_reference(attention_statistics(c), Dtype::f32, tolerance);
        c.scale = ScaleForm::none;
        compare_with_reference(attention_entropy(c), Dtype::f32, tolerance);
      }
    }
  }
}

TEST_CASE("bidirectional attention has the same bits for any number of threads") {
  size_t n = 0;
  for (const NormalizerForm& form : {NormalizerForm{}, entmax(1.5), topk(4)}) {
    for (const TableForm table : two_sided_forms()) {
      AttentionCase c = case_of(form, n++, 300);
      c.table = table;
      c.K = 1;
      if (n % 3 == 0 && !reads_content(table)) c.mix = MixForm::concat;
      INFO(describe(c));
      check_same_for_any_threads(attention(c), Dtype::f32);
    }
  }
}

/// Reverses dimension `dim`, of T tokens.
Values reversed(const Values& v, size_t dim) {
  Values out = v;
  const int64_t T = v.shape[dim];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < v.shape.size(); ++d) inner *= v.shape[d];
  for (size_t i = 0; i < v.x.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i), t = at / inner % T;
    out.x[static_cast<size_t>(at + (T - 1 - 2 * t) * inner)] = v.x[i];
  }
  return out;
}

// For a bias that is the same on both sides. The rows' own fp64 arithmetic visits keys in a
// different order.
TEST_CASE("reversed queries, keys and values give reversed outputs and gradients") {
  for (const NormalizerForm& form : normalizers()) {
    if (form.kind == NormalizerKind::topk) continue;  // ties go to the lowest key
    for (const TableForm table : {TableForm::none, TableForm::difference, TableForm::log_square}) {
      AttentionCase c;
      c.causal = false;
      c.B = 1;
      c.H = c.K = 2;
      c.D = 6;
      c.table = table;
      c.normalizer = form;
      c.own_rows = true;
      INFO(describe(c));
      Operation op = attention(c);
      op.cotangents["out"] = random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout");
      const auto around = [](Arrays in) {
        for (const char* name : {"q", "k", "v", "out"}) {
          if (in.count(name)) in.at(name) = reversed(in.at(name), 1);
        }
        if (in.count("numbers")) in.at("numbers") = reversed(in.at("numbers"), 2);
        return in;
      };
      const Pass plain = run(op, Dtype::f64);
      op.inputs = around(op.inputs);
      op.cotangents = around(op.cotangents);
      const Pass found = run(op, Dtype::f64);
      check_close("out", found.results.at("out"), around(plain.results).at("out"), 1e-13);
      const Arrays truth = around(plain.gradients);
      for (const auto& [name, v] : truth) check_close(name, found.gradients.at(name), v, 1e-11, 1);
    }
  }
}

// Gradients of elements that no row of the sequence reads.
TEST_CASE("padding gives nothing to any row, and nothing goes back to it") {
  for (const TableForm table : two_sided_forms()) {
    AttentionCase c = case_of({}, 2, 130);  // with padding
    c.table = table;
    REQUIRE(c.padding);
    INFO(describe(c));
    const std::vector<int32_t> first = first_keys(c), last = last_keys(c);
    const auto is_padding = [&](int64_t row) {  // of (B, T), flattened
      const auto n = static_cast<size_t>(row);
      return first[n] == last[n] && first[n] == row % c.T && row % c.T > 0;
    };
    Operation op = attention(c);
    Values& dout = op.cotangents["out"];
    dout = random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout");
    const auto for_padding = [&](Values& v, auto&& f) {
      const auto width = static_cast<int64_t>(v.x.size()) / (c.B * c.T);
      for (size_t i = 0; i < v.x.size(); ++i) {
        if (is_padding(static_cast<int64_t>(i) / width)) f(v.x[i]);
      }
    };
    const auto clear = [](double& x) { x = 0; };
    for_padding(dout, clear);
    Pass plain = run(op, Dtype::f32);
    for (const char* name : {"q", "k", "v"}) {
      for_padding(op.inputs.at(name), [](double& x) { x = 1000 - x; });
      size_t padding = 0;
      for_padding(plain.gradients.at(name), [&](double& x) {
        CHECK(x == 0);
        ++padding;
      });
      CHECK(padding > 0);
    }
    Pass other = run(op, Dtype::f32);
    for (Pass* pass : {&plain, &other}) for_padding(pass->results.at("out"), clear);
    check_equal(other.results.at("out").x, plain.results.at("out").x);
    for (const char* name : {"q", "k", "v"}) {
      check_equal(other.gradients.at(name).x, plain.gradients.at(name).x);
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing

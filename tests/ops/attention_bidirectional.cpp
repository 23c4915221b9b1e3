// Attention whose rows see keys on both sides: finite differences of the reference, and the CPU
// backend compared with the reference.

#include <cmath>
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

/// Every T and D in every form of bias and scale. Heads, sequences, documents, windows and padding
/// cycle with different periods.
template <class F>
void for_bidirectional_cases(F&& f) {
  size_t n = 0;
  for (int64_t T : {1, 17, 64, 65, 130, 200}) {
    for (int64_t D : {6, 20, 64}) {
      for (TableForm table : two_sided_forms()) {
        AttentionCase c;
        c.causal = false;
        c.T = T;
        c.D = D;
        c.table = table;
        c.scale = kScaleForms[n % 3];
        c.H = kTurningHeads[n / 2 % 4][0];
        c.K = kTurningHeads[n / 2 % 4][1];
        c.B = 1 + static_cast<int64_t>(n / 4 % 3);
        c.documents = n / 3 % 3 == 1;
        c.padding = n / 2 % 3 == 1;
        c.window = kTurningWindows[n / 5 % 6];
        c.zero_scale = n / 2 % 4 == 1;
        c.own_rows = reads_content(table);
        if (n % 5 == 3) c.content_scale = 0.5 / std::sqrt(static_cast<double>(D));
        ++n;
        INFO(describe(c));
        f(c);
      }
    }
  }
}

WorkspaceShape workspace_of(NormalizerKind kind) {
  WorkspaceShape shape = Machine::kShape;
  shape.bidirectional = true;
  if (!traits_of(kind).fused) shape.attention.push_back({.general_path = true});
  return shape;
}

/// The CPU backend in both instruction sets.
struct Machines {
  Machine newest, older;
  Machines(Dtype t, NormalizerKind kind)
      : newest(t, kNewestIsa, workspace_of(kind)), older(t, CpuIsa::avx2, workspace_of(kind)) {}

  void compare(const Operation& op, Dtype t, double tolerance) {
    compare_with_reference(op, t, tolerance, {&newest, &older});
  }
};

TEST_CASE("bidirectional attention on the CPU agrees with the reference over shapes and forms") {
  for (const Dtype t : {Dtype::f32, Dtype::bf16}) {
    Machines machines(t, NormalizerKind::softmax);
    for_bidirectional_cases(
        [&](const AttentionCase& c) { machines.compare(attention(c), t, fp32_tolerance(c)); });
  }
}

TEST_CASE("the adjoint of bidirectional attention agrees with finite differences") {
  for (TableForm table : two_sided_forms()) {
    for (ScaleForm scale : kScaleForms) {
      for (int masked : {0, 1, 2, 3}) {
        AttentionCase c;
        c.causal = false;
        c.B = 2;
        c.T = 17;
        c.H = 4;
        c.K = masked == 2 ? 1 : 2;
        c.D = 6;
        c.table = table;
        c.scale = scale;
        c.documents = masked == 1;
        c.window = masked == 2 ? 5 : 0;
        c.padding = masked == 3;
        c.zero_scale = masked == 2;
        if (table == TableForm::fire) continue;  // "of_u" is not an input's gradient
        INFO(describe(c));
        CHECK(difference_error(attention(c), 30) < kDifferenceTolerance);
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
  c.B = 2;
  c.T = T;
  c.H = 4;
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
    Machines machines(Dtype::f32, form.kind);
    for (const int64_t T : {2, 17, 65, 200}) {
      for (int turn = 0; turn < 2; ++turn) {
        const AttentionCase c = case_of(form, n++, T);
        INFO(describe(c));
        machines.compare(attention(c), Dtype::f32, normalizer_tolerance(c));
      }
    }
  }
}

TEST_CASE("the adjoint of bidirectional attention has finite differences with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : one_of_every_normalizer({entmax(1.5, true), topk(4)})) {
    if (traits_of(form.kind).causal_only) continue;
    for (const TableForm table : two_sided_forms()) {
      AttentionCase c = case_of(form, n++, 12);
      c.D = 6;
      c.table = table;
      c.content = 1;
      if (table == TableForm::fire) continue;  // "of_u" is not an input's gradient
      INFO(describe(c));
      // Second derivatives jump when an entmax key comes near its threshold.
      const double factor = form.kind == NormalizerKind::entmax ? 10 : 1;
      CHECK(difference_error(attention(c), 20) < factor * kDifferenceTolerance);
    }
  }
}

TEST_CASE("bidirectional mixed heads: finite differences, and the CPU beside the reference") {
  size_t n = 0;
  Machines machines(Dtype::f32, NormalizerKind::softmax);
  for (const TableForm table : two_sided_forms()) {
    if (reads_content(table)) continue;
    for (const MixForm form :
         {MixForm::concat, MixForm::concat_residual, MixForm::add_residual, MixForm::bias_only}) {
      if (table == TableForm::none && form == MixForm::bias_only) continue;  // a constant
      for (const int64_t T : {9, 65, 130}) {
        AttentionCase c = case_of({}, n++, T);
        c.content = 1;
        c.table = table;
        if (T > 100) c.B = 1;  // fewer logits leave room for a kink far from all
        c.mix = form;
        c.hidden = n % 2 == 0 ? 5 : 32;
        INFO(describe(c));
        machines.compare(attention(c), Dtype::f32, mix_tolerance(c));
        if (T > 9 || table == TableForm::fire) continue;
        Operation op = attention(c);
        const Values c2 = op.inputs.extract("c2").mapped();  // shifts all logits of a row equally
        const auto with_c2 = [c2](auto run) {
          return [c2, run](Machine& m, Arrays in, const auto&... rest) {
            in.emplace("c2", c2);
            return run(m, in, rest...);
          };
        };
        op.forward = with_c2(op.forward);
        op.adjoint = with_c2(op.adjoint);
        CHECK(difference_error(op, 20) < kDifferenceTolerance);
      }
    }
  }
}

TEST_CASE("entropy and statistics of bidirectional attention agree with the reference") {
  size_t n = 0;
  for (const NormalizerForm& form : normalizers()) {
    if (form.kind == NormalizerKind::entmax)
      continue;  // attention_statistics.cpp has their tolerances
    Machines machines(Dtype::f32, form.kind);
    for (const int64_t T : {17, 130}) {
      for (size_t turn = 0; turn < two_sided_forms().size(); ++turn) {
        AttentionCase c = case_of(form, n++, T);
        if (n % 4 == 0 && !reads_content(c.table)) c.mix = MixForm::concat_residual;
        INFO(describe(c));
        const double tolerance = 8 * (c.mix ? mix_tolerance(c) : fp32_tolerance(c));
        machines.compare(attention_statistics(c), Dtype::f32, tolerance);
        c.scale = ScaleForm::none;
        machines.compare(attention_entropy(c), Dtype::f32, tolerance);
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
      CHECK(same_for_any_threads(attention(c), Dtype::f32, workspace_of(form.kind)));
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
      c.T = 70;
      c.H = c.K = 2;
      c.D = 6;
      c.table = table;
      c.normalizer = form;
      c.own_rows = true;
      INFO(describe(c));
      const Operation op = attention(c);
      Machine m(Dtype::f64, kNewestIsa, workspace_of(form.kind));
      const auto around = [](Arrays in) {
        for (const char* name : {"q", "k", "v", "out"}) {
          if (in.count(name)) in.at(name) = reversed(in.at(name), 1);
        }
        if (in.count("numbers")) in.at("numbers") = reversed(in.at("numbers"), 2);
        return in;
      };
      const Arrays cotangents = {
          {"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout")}};
      const Arrays out = op.forward(m, op.inputs), found = op.forward(m, around(op.inputs));
      check_close("out", found.at("out"), reversed(out.at("out"), 1), 1e-13);
      const Arrays g = op.adjoint(m, op.inputs, out, cotangents, 0);
      const Arrays dfound = op.adjoint(m, around(op.inputs), found, around(cotangents), 0);
      const Arrays truth = around(g);
      for (const auto& [name, v] : truth) check_close(name, dfound.at(name), v, 1e-11, 1);
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
    Machine m(Dtype::f32, kNewestIsa, workspace_of(NormalizerKind::softmax));
    Operation op = attention(c);
    Arrays cotangents = {{"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout")}};
    const auto for_padding = [&](Values& v, auto&& f) {
      const auto width = static_cast<int64_t>(v.x.size()) / (c.B * c.T);
      for (size_t i = 0; i < v.x.size(); ++i) {
        if (is_padding(static_cast<int64_t>(i) / width)) f(v.x[i]);
      }
    };
    for_padding(cotangents.at("out"), [](double& x) { x = 0; });
    const Arrays out = op.forward(m, op.inputs);
    const Arrays g = op.adjoint(m, op.inputs, out, cotangents, 0);
    Arrays other = op.inputs;
    for (const char* name : {"q", "k", "v"}) {
      for_padding(other.at(name), [](double& x) { x = 1000 - x; });
      Values gradient = g.at(name);
      size_t padding = 0;
      for_padding(gradient, [&](double& x) {
        CHECK(x == 0);
        ++padding;
      });
      CHECK(padding > 0);
    }
    Arrays out_of_other = op.forward(m, other);
    for_padding(out_of_other.at("out"), [](double& x) { x = 0; });
    Values truth = out.at("out");
    for_padding(truth, [](double& x) { x = 0; });
    check_equal(out_of_other.at("out").x, truth.x);
    const Arrays dother = op.adjoint(m, other, op.forward(m, other), cotangents, 0);
    for (const char* name : {"q", "k", "v"}) check_equal(dother.at(name).x, g.at(name).x);
  }
}

}  // namespace
}  // namespace bamtrain::testing

// Attention of the CUDA backend with every normalizer, compared with the fp64 reference; and rows
// with extreme logits.

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "cuda/attention_shapes.h"
#include "cuda/device.h"
#include "ops/normalizer_forms.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

const std::vector<TableForm> kTables = table_forms_of_priors();

/// Every normalizer; softmax takes the general path here. Tests name steep forms of entmax
/// themselves.
std::vector<NormalizerForm> forms() {
  std::vector<NormalizerForm> all = every_normalizer();
  std::erase_if(all, [](const NormalizerForm& form) {
    return form.kind == NormalizerKind::entmax && form.alpha > 2;
  });
  return all;
}

void check_normalizer(const AttentionCase& c, Dtype t) {
  INFO(describe(c) << " in " << name_of(t));
  Machine machine(t, cuda_device(), workspace_of(c, true));
  Operation op = attention(c);
  if (t == Dtype::bf16) allow_for_logit_readers(op, c);
  compare_with_reference(op, t, general_tolerance(c, t), {&machine});
}

bool allowed(const AttentionCase& c) {
  return c.scale == ScaleForm::none || traits_of(c.normalizer.kind).takes_scale;
}

}  // namespace

TEST_CASE("attention on CUDA agrees with the reference with every normalizer and form") {
  const std::vector<NormalizerForm> normalizers = forms();
  for (size_t row = 0; row < normalizers.size(); ++row) {
    for (size_t column = 0; column < kTables.size(); ++column) {
      for (size_t s = 0; s < std::size(kScales); ++s) {
        if (!is_run(row, column * std::size(kScales) + s, 4)) continue;
        const ScaleForm scale = kScales[s];
        AttentionCase c;
        c.B = 2;
        c.T = 70;
        c.H = 4;
        c.K = 2;
        c.D = 16;
        c.table = kTables[column];
        c.scale = scale;
        c.documents = scale != ScaleForm::content;
        c.normalizer = normalizers[row];
        if (!allowed(c)) continue;
        check_normalizer(c, Dtype::f32);
        check_normalizer(c, Dtype::bf16);
      }
    }
  }
}

TEST_CASE("normalizers on CUDA agree with the reference at every head dimension", "[long]") {
  size_t n = 0;
  for (const int64_t D : {16, 32, 48, 64, 80, 96, 128}) {
    for (const NormalizerForm& form : one_of_every_normalizer()) {
      AttentionCase c;
      c.T = 200;
      c.H = 2;
      c.K = 1;
      c.D = D;
      c.table = kTables[(n + static_cast<size_t>(D) / 16) % kTables.size()];
      c.scale = kScales[n % 3];
      c.window = n % 2 == 0 ? 0 : 90;
      c.normalizer = form;
      ++n;
      if (!allowed(c)) c.scale = ScaleForm::none;
      check_normalizer(c, Dtype::bf16);
    }
    AttentionCase formed;
    formed.T = 70;
    formed.H = 2;
    formed.D = D;
    formed.table = TableForm::relative;
    formed.normalizer = entmax(1.5);
    check_normalizer(formed, Dtype::bf16);
  }
}

// The forward pass of softmax over a mixed bias has a separate kernel.
TEST_CASE("mixed heads on CUDA agree with the reference with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : one_of_every_normalizer()) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      AttentionCase c;
      c.T = 70;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      do {
        c.table = kTables[n++ % kTables.size()];
      } while (reads_content(c.table));
      c.scale = kScales[n % 3];
      c.normalizer = form;
      c.mix = MixForm::add_residual;
      c.hidden = 20;
      c.rounded_weights = true;
      if (!allowed(c)) c.scale = ScaleForm::none;
      check_normalizer(c, t);
    }
  }
}

// Weights are rounded numbers to the power 1 / (alpha - 1).
TEST_CASE("the gradient of an alpha near 1 on CUDA agrees with the reference") {
  for (double alpha : {1.002, 1.01, 1.05}) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      AttentionCase c;
      c.T = 130;
      c.D = 16;
      c.normalizer = entmax(alpha, true);
      INFO(describe(c) << " in " << name_of(t));
      Machine machine(t, cuda_device(), workspace_of(c, true));
      const double rounded = t == Dtype::bf16 ? 6 * kBf16 : 0;
      compare_with_reference(attention(c), t, rounded + 2 * fp32_tolerance(c) / (alpha - 1),
                             {&machine});
    }
  }
}

// Rows of 6 tiles. For stick-breaking, also more heads than the backward pass takes at a time.
TEST_CASE("normalizers over many tiles and heads on CUDA agree with the reference") {
  for (const NormalizerForm& form : one_of_every_normalizer({entmax(2), topk(40)})) {
    AttentionCase c;
    c.T = 330;
    c.H = 3;
    c.K = 1;
    c.D = 64;
    c.table = TableForm::falling;
    c.normalizer = form;
    check_normalizer(c, Dtype::bf16);
  }
  AttentionCase c;
  c.B = 15;
  c.T = 129;
  c.H = c.K = 12;
  c.D = 16;
  c.normalizer = stick_breaking();
  check_normalizer(c, Dtype::bf16);
}

TEST_CASE("bidirectional attention on CUDA agrees with the reference with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : forms()) {
    if (traits_of(form.kind).causal_only) continue;
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      for (int turn = 0; turn < 2; ++turn) {
        AttentionCase c;
        c.causal = false;
        c.B = 2;
        c.T = 70;
        c.H = 4;
        c.K = 2;
        c.D = 16;
        do c.table = kTables[n++ % kTables.size()];
        while (c.table == TableForm::contextual);
        c.scale = kScales[n % 3];
        c.documents = n % 2 == 0;
        c.padding = n % 3 == 0;
        c.normalizer = form;
        check_normalizer(c, t);
      }
    }
  }
}

TEST_CASE("statistics of attention on CUDA agree with the reference, with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : forms()) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      AttentionCase c;
      c.B = 2;
      c.T = 70;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      c.table = kTables[n % kTables.size()];
      c.scale = kScales[n % 3];
      c.documents = true;
      c.normalizer = form;
      c.causal = traits_of(form.kind).causal_only || c.table == TableForm::contextual || n % 3 != 0;
      ++n;
      if (!allowed(c)) c.scale = ScaleForm::none;
      INFO(describe(c) << " in " << name_of(t));
      Machine machine(t, cuda_device(), workspace_of(c, true));
      // As in tests/ops/attention_statistics.cpp. In both precisions, weights come from fp32
      // logits.
      const double a = form.alpha - 1, rounding = 8 * fp32_tolerance(c);
      compare_with_reference(attention_statistics(c), t,
                             form.kind == NormalizerKind::entmax ? rounding / a : rounding,
                             {&machine});
    }
  }
}

namespace {
AttentionCase case_of_documents(const NormalizerForm& form) {
  AttentionCase c;
  c.T = 100;
  c.H = 2;
  c.K = 1;
  c.D = 16;
  c.documents = true;
  c.normalizer = form;
  return c;
}
}  // namespace

// Every fifth key is the same, so that a row keeps some of the keys with its smallest kept logit.
TEST_CASE("of keys with one logit topk on CUDA keeps those that the reference keeps") {
  for (const NormalizerForm& form : {topk(7), topk(0)}) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      const AttentionCase c = case_of_documents(form);
      INFO(describe(c) << " in " << name_of(t));
      Operation op = attention(c), statistics = attention_statistics(c);
      std::vector<double>& k = op.inputs.at("k").x;
      for (size_t n = 5 * 16; n < k.size(); ++n) k[n] = k[n - 5 * 16];
      statistics.inputs = op.inputs;
      op.tolerances["last"] = 1;  // any key before the next with the same logit serves
      Machine machine(t, cuda_device(), workspace_of(c, true));
      compare_with_reference(op, t, general_tolerance(c, t), {&machine});
      compare_with_reference(statistics, t, 8 * fp32_tolerance(c), {&machine});
    }
  }
}

TEST_CASE("rows at the edges of what numbers hold sum to one on CUDA, without NaN in gradients") {
  std::vector<NormalizerForm> all = forms();
  for (double alpha : {1.001, 3.0, 16.0, 64.0}) all.push_back(entmax(alpha));
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    for (const NormalizerForm& form : all) {
      AttentionCase c = case_of_documents(form);
      Machine m(t, cuda_device(), workspace_of(c, true));
      // Logits that are all equal, of size 1 and of size 1e4, and bam's floor.
      for (double factor : {0.0, 1.0, 1e4}) {
        for (TableForm table : {TableForm::none, TableForm::self}) {
          c.table = table;
          INFO(describe(c) << ", logits times " << factor << " in " << name_of(t));
          Operation op = attention(c);
          std::fill(op.inputs.at("v").x.begin(), op.inputs.at("v").x.end(), 1.0);
          for (double& x : op.inputs.at("q").x) x *= factor;
          Arrays results = op.forward(m, op.inputs);
          const Arrays cotangents = {
              {"out", random_values(Role::activation, {c.B, c.T, c.H, c.D}, "dout")}};
          const bool whole = traits_of(form.kind).sums_to_one;
          // Each weight is rounded to bf16, then their sum. Near alpha 1, rounding errors of x =
          // p^(1/1000) are a thousand times those of p.
          const double most = form.kind == NormalizerKind::entmax && form.alpha < 1.1 ? 1e-3 : 1e-5;
          const double least = t == Dtype::bf16 ? 2 * kBf16 : most;
          size_t wrong = 0;
          for (double sum : results.at("out").x) {
            wrong += !(sum <= 1 + least && sum >= (whole ? 1 - least : 0));
          }
          CHECK(wrong == 0);
          for (const auto& [name, v] : op.adjoint(m, op.inputs, results, cotangents, 0)) {
            INFO(name);
            CHECK(std::all_of(v.x.begin(), v.x.end(), [](double x) { return std::isfinite(x); }));
          }
        }
      }
    }
  }
}

}  // namespace bamtrain::testing

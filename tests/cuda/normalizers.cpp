// Attention of the CUDA backend with every normalizer, compared with the fp64 reference; and rows
// with extreme logits.

#include "catch.h"
#include "cuda/attention_shapes.h"
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

/// A case of a normalizer on the general path, without the scale if that is not for it.
AttentionCase general(AttentionCase c, const NormalizerForm& form) {
  c.normalizer = form;
  c.general = true;
  if (!traits_of(form.kind).takes_scale) c.scale = ScaleForm::none;
  return c;
}

}  // namespace

TEST_CASE("attention on CUDA agrees with the reference with every normalizer and form") {
  const std::vector<NormalizerForm> normalizers = forms();
  for (size_t row = 0; row < normalizers.size(); ++row) {
    for (size_t column = 0; column < 3 * kTables.size(); ++column) {
      if (!is_run(row, column, 4)) continue;
      const ScaleForm scale = kScaleForms[column % 3];
      AttentionCase c;
      c.table = kTables[column / 3];
      c.scale = scale;
      c.documents = scale != ScaleForm::content;
      c = general(c, normalizers[row]);
      if (c.scale == scale) check_attention(c);
    }
  }
}

TEST_CASE("normalizers on CUDA agree with the reference at every head dimension", "[long]") {
  size_t n = 0;
  for (const int64_t D : {16, 32, 48, 64, 80, 96, 128}) {
    for (const NormalizerForm& form : one_of_every_normalizer()) {
      AttentionCase c = one_group(200, D);
      c.table = kTables[(n + static_cast<size_t>(D) / 16) % kTables.size()];
      c.scale = kScaleForms[n % 3];
      c.window = n++ % 2 == 0 ? 0 : 90;
      check_attention(general(c, form), Dtype::bf16);
    }
    AttentionCase formed = one_group(70, D);
    formed.table = TableForm::relative;
    check_attention(general(formed, entmax(1.5)), Dtype::bf16);
  }
}

// The forward pass of softmax over a mixed bias has a separate kernel.
TEST_CASE("mixed heads on CUDA agree with the reference with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : one_of_every_normalizer()) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      AttentionCase c;
      c.B = 1;
      do {
        c.table = kTables[n++ % kTables.size()];
      } while (reads_content(c.table));
      c.scale = kScaleForms[n % 3];
      c.mix = MixForm::add_residual;
      c.hidden = 20;
      c.rounded_weights = true;
      check_attention(general(c, form), t);
    }
  }
}

// Weights are rounded numbers to the power 1 / (alpha - 1).
TEST_CASE("the gradient of an alpha near 1 on CUDA agrees with the reference") {
  for (double alpha : {1.002, 1.01, 1.05}) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      const AttentionCase c = general(one_group(130, 16, 1), entmax(alpha, true));
      const double rounded = t == Dtype::bf16 ? 6 * kBf16 : 0;
      check_on_cuda(attention(c), c, t, rounded + 2 * fp32_tolerance(c) / (alpha - 1));
    }
  }
}

// Rows of 6 tiles. For stick-breaking, also more heads than the backward pass takes at a time.
TEST_CASE("normalizers over many tiles and heads on CUDA agree with the reference") {
  for (const NormalizerForm& form : one_of_every_normalizer({entmax(2), topk(40)})) {
    AttentionCase c = one_group(330, 64, 3);
    c.table = TableForm::falling;
    check_attention(general(c, form), Dtype::bf16);
  }
  AttentionCase c;
  c.B = 15;
  c.T = 129;
  c.H = c.K = 12;
  check_attention(general(c, stick_breaking()), Dtype::bf16);
}

TEST_CASE("bidirectional attention on CUDA agrees with the reference with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : forms()) {
    if (traits_of(form.kind).causal_only) continue;
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      for (int turn = 0; turn < 2; ++turn) {
        AttentionCase c;
        c.causal = false;
        do c.table = kTables[n++ % kTables.size()];
        while (c.table == TableForm::contextual);
        c.scale = kScaleForms[n % 3];
        c.documents = n % 2 == 0;
        c.padding = n % 3 == 0;
        check_attention(general(c, form), t);
      }
    }
  }
}

TEST_CASE("statistics of attention on CUDA agree with the reference, with every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& form : forms()) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      AttentionCase c;
      c.table = kTables[n % kTables.size()];
      c.scale = kScaleForms[n % 3];
      c.documents = true;
      c.causal = traits_of(form.kind).causal_only || c.table == TableForm::contextual || n % 3 != 0;
      ++n;
      c = general(c, form);
      // As in tests/ops/attention_statistics.cpp. In both precisions, weights come from fp32
      // logits.
      const double a = form.kind == NormalizerKind::entmax ? form.alpha - 1 : 1;
      check_on_cuda(attention_statistics(c), c, t, 8 * fp32_tolerance(c) / a);
    }
  }
}

// Every fifth key is the same, so that a row keeps some of the keys with its smallest kept logit.
TEST_CASE("of keys with one logit topk on CUDA keeps those that the reference keeps") {
  for (const NormalizerForm& form : {topk(7), topk(0)}) {
    AttentionCase c = general(one_group(100, 16), form);
    c.documents = true;
    Operation op = attention(c), statistics = attention_statistics(c);
    std::vector<double>& k = op.inputs.at("k").x;
    for (size_t n = 5 * 16; n < k.size(); ++n) k[n] = k[n - 5 * 16];
    statistics.inputs = op.inputs;
    op.tolerances["last"] = 1;  // any key before the next with the same logit serves
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      check_on_cuda(op, c, t, cuda_tolerance(c, t));
      check_on_cuda(statistics, c, t, 8 * fp32_tolerance(c));
    }
  }
}

TEST_CASE("rows at the edges of what numbers hold sum to one on CUDA, without NaN in gradients") {
  std::vector<NormalizerForm> all = forms();
  for (double alpha : {1.001, 3.0, 16.0, 64.0}) all.push_back(entmax(alpha));
  for (const NormalizerForm& form : all) {
    AttentionCase c = general(one_group(100, 16), form);
    c.documents = true;
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      Machine m(t, cuda_device(), workspace_of(c));
      check_edges(m, c, 2 * kBf16);  // each weight is rounded to bf16, then their sum
    }
  }
}

}  // namespace bamtrain::testing

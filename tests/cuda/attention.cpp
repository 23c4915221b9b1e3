// Attention of the CUDA backend, compared with the fp64 reference in every form at every head
// dimension.

#include <vector>

#include "catch.h"
#include "cuda/attention_shapes.h"
#include "cuda/device.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

void check_attention(const AttentionCase& c, Dtype t) {
  INFO(describe(c) << " in " << name_of(t));
  Machine machine(t, cuda_device(), workspace_of(c));
  Operation op = attention(c);
  if (t == Dtype::bf16) allow_for_logit_readers(op, c);
  // p and dz are rounded to bf16 before matrix products: one or two kBf16 on top of the rounding of
  // the result.
  compare_with_reference(op, t, t == Dtype::f32 ? 4 * kF32 * 24 : 3 * kBf16, {&machine});
}

// With biases that are formed T exceeds a block of 128 queries, so that tiles stay unwritten.
TEST_CASE("attention on CUDA agrees with the reference in every form") {
  for (TableForm table : table_forms_of_priors()) {
    for (ScaleForm scale : kScales) {
      AttentionCase c;
      c.B = 2;
      c.T = reads_content(table) ? 130 : 70;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      c.table = table;
      c.scale = scale;
      c.documents = scale == ScaleForm::both;
      for (Dtype t : {Dtype::f32, Dtype::bf16}) check_attention(c, t);
    }
  }
}

// Tiles below the diagonal, on it and past the end. Also tiles in which documents end (without a
// scale) or which a window cuts (with a scale).
TEST_CASE("attention on CUDA agrees with the reference in every form at every head dimension",
          "[long]") {
  for (const int64_t D : {16, 32, 48, 64, 80, 96, 128}) {
    for (TableForm table : table_forms_of_priors()) {
      for (ScaleForm scale : kScales) {
        AttentionCase c;
        c.T = 200;
        c.H = 2;
        c.K = 1;
        c.D = D;
        c.table = table;
        c.scale = scale;
        check_attention(c, Dtype::bf16);
        c.documents = scale == ScaleForm::none;
        c.window = scale == ScaleForm::none ? 0 : scale == ScaleForm::content ? 40 : 70;
        check_attention(c, Dtype::bf16);
      }
    }
  }
}

// The shipped configs have lengths of 4 tiles and more. Here there are six; a window keeps only the
// nearest, otherwise all are kept.
TEST_CASE("attention over many tiles on CUDA agrees with the reference in every form") {
  size_t row = 0;
  for (TableForm table : table_forms_of_priors()) {
    ++row;
    for (ScaleForm scale : kScales) {
      if (!is_run(row, static_cast<size_t>(scale), 2)) continue;
      AttentionCase c;
      c.T = 330;
      c.H = 3;
      c.K = 1;
      c.D = 64;
      c.table = table;
      c.scale = scale;
      c.window = scale == ScaleForm::both ? 150 : 0;
      check_attention(c, Dtype::bf16);
    }
  }
}

void check_mixed(const AttentionCase& c, Dtype t) {
  INFO(describe(c) << " in " << name_of(t));
  Machine machine(t, cuda_device(), workspace_of(c));
  Operation op = attention(c);
  if (t == Dtype::bf16) allow_for_logit_readers(op, c);
  // Sums reach 27, and the network's function of their differences is as large. It is a logit, and
  // its rounding error multiplies into the scale's gradient.
  const double of_sums = has_sums(c) ? 32 * 27 * kF32 : 0;
  compare_with_reference(op, t, t == Dtype::f32 ? 4 * kF32 * 24 + of_sums : 3 * kBf16, {&machine});
}

// Tensor cores: 16 or 32 heads and 32 or 64 hidden units, with both input widths of the network.
// Plain loops: 33 heads.
TEST_CASE("mixed heads on CUDA agree with the reference") {
  size_t n = 0;
  for (TableForm table : table_forms_of_priors()) {
    if (reads_content(table)) continue;
    for (const int64_t H : {4, 18, 33}) {
      for (const int64_t hidden : {20, 40}) {
        for (MixForm form : {MixForm::concat_residual, MixForm::add_residual}) {
          const size_t place = n++;
          if (!is_run(place / 12, place, 3)) continue;
          AttentionCase c;
          c.B = 2;
          c.T = 70;
          c.H = H;
          c.K = H == 33 ? 33 : 2;
          c.D = 16;
          c.table = table;
          c.scale = kScales[place % std::size(kScales)];
          c.documents = place % 2 == 0;
          c.mix = table == TableForm::none ? MixForm::add_residual : form;
          c.hidden = hidden;
          c.rounded_weights = true;
          check_mixed(c, Dtype::bf16);
          if (H == 4) check_mixed(c, Dtype::f32);
        }
      }
    }
  }
}

// The shape of DAPE's recipe; rows are long enough for rounding errors to average out.
TEST_CASE("mixed heads at a length of training on CUDA agree with the reference") {
  for (TableForm table : {TableForm::falling, TableForm::fire}) {
    if (table == TableForm::fire && !long_tests()) continue;
    AttentionCase c;
    c.T = 512;
    c.H = c.K = 12;
    c.D = 64;
    c.table = table;
    c.mix = MixForm::concat_residual;
    c.hidden = 32;
    c.rounded_weights = true;
    check_mixed(c, Dtype::bf16);
  }
}

// More blocks than fit on any GPU at once. With a table there are also enough for a block of keys
// to take two tiles (attention_parts of kernels/attention.h): 342 heads, 3 tiles in 2 parts.
TEST_CASE("attention over many heads on CUDA agrees with the reference") {
  for (TableForm table : {TableForm::falling, TableForm::fire}) {
    AttentionCase c;
    c.B = 19;
    c.T = 129;
    c.H = c.K = 18;
    c.D = 16;
    c.table = table;
    c.scale = ScaleForm::both;
    check_attention(c, Dtype::bf16);
  }
}

// Also with several parts of a sequence's queries, as in content_logits.
TEST_CASE("bidirectional attention on CUDA agrees with the reference in every form") {
  size_t n = 0;
  for (TableForm table : table_forms_of_priors()) {
    if (table == TableForm::contextual) continue;
    for (ScaleForm scale : kScales) {
      AttentionCase c;
      c.causal = false;
      c.B = 2;
      c.T = n % 2 == 0 ? 70 : 45;
      c.H = 4;
      c.K = 2;
      c.D = n % 3 == 0 ? 32 : 16;
      c.table = table;
      c.scale = scale;
      c.documents = n % 3 == 1;
      c.padding = n % 3 == 2;
      c.window = n % 4 == 3 ? 20 : 0;
      const size_t row = static_cast<size_t>(n) / std::size(kScales);
      const size_t column = static_cast<size_t>(n) % std::size(kScales);
      ++n;
      if (!is_run(row, column, 2)) continue;
      for (Dtype t : {Dtype::f32, Dtype::bf16}) check_attention(c, t);
      if (reads_content(table)) continue;
      c.mix = table == TableForm::none ? MixForm::add_residual : MixForm::concat_residual;
      c.hidden = 20;
      for (Dtype t : {Dtype::f32, Dtype::bf16}) check_mixed(c, t);
    }
  }
}

TEST_CASE("a content scale on CUDA is a factor of the queries, to the bit") {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    Machine m(t, cuda_device());
    for (TableForm table : table_forms_of_priors()) {
      if (reads_content(table)) continue;  // queries also contribute to its bias
      for (ScaleForm scale : kScales) {
        AttentionCase c;
        c.T = 70;
        c.H = 2;
        c.K = 1;
        c.D = 16;
        c.table = table;
        c.scale = scale;
        check_content_scale(m, c);
      }
    }
  }
}

TEST_CASE("entropies of attention on CUDA agree with the reference in every form") {
  for (TableForm table : table_forms_of_priors()) {
    AttentionCase c;
    c.B = 2;
    c.T = 70;
    c.H = 4;
    c.K = 2;
    c.D = 48;
    c.table = table;
    c.documents = table != TableForm::none;
    c.window = table == TableForm::none ? 40 : 0;
    c.causal = table != TableForm::falling && table != TableForm::fire;
    INFO(describe(c));
    Machine f32(Dtype::f32, cuda_device()), bf16(Dtype::bf16, cuda_device());
    // See tests/ops/attention_entropy.cpp.
    compare_with_reference(attention_entropy(c), Dtype::f32, 4 * kF32 * 24, {&f32});
    compare_with_reference(attention_entropy(c), Dtype::bf16, 4 * kF32 * 24, {&bf16});
  }
}

}  // namespace
}  // namespace bamtrain::testing

// Attention of the CUDA backend, compared with the fp64 reference in every form at every head
// dimension.

#include "catch.h"
#include "cuda/attention_shapes.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

// With biases that are formed T exceeds a block of 128 queries, so that tiles stay unwritten.
TEST_CASE("attention on CUDA agrees with the reference in every form") {
  for (TableForm table : table_forms_of_priors()) {
    for (ScaleForm scale : kScaleForms) {
      AttentionCase c;
      c.T = reads_content(table) ? 130 : 70;
      c.table = table;
      c.scale = scale;
      c.documents = scale == ScaleForm::both;
      check_attention(c);
    }
  }
}

// Tiles below the diagonal, on it and past the end. Also tiles in which documents end (without a
// scale) or which a window cuts (with a scale).
TEST_CASE("attention on CUDA agrees with the reference in every form at every head dimension",
          "[long]") {
  for (const int64_t D : {16, 32, 48, 64, 80, 96, 128}) {
    for (TableForm table : table_forms_of_priors()) {
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c = one_group(200, D);
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
    for (ScaleForm scale : kScaleForms) {
      if (!is_run(row, static_cast<size_t>(scale), 2)) continue;
      AttentionCase c = one_group(330, 64, 3);
      c.table = table;
      c.scale = scale;
      c.window = scale == ScaleForm::both ? 150 : 0;
      check_attention(c, Dtype::bf16);
    }
  }
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
          c.H = H;
          c.K = H == 33 ? 33 : 2;
          c.table = table;
          c.scale = kScaleForms[place % 3];
          c.documents = place % 2 == 0;
          c.mix = table == TableForm::none ? MixForm::add_residual : form;
          c.hidden = hidden;
          c.rounded_weights = true;
          check_attention(c, Dtype::bf16);
          if (H == 4) check_attention(c, Dtype::f32);
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
    c.B = 1;
    c.T = 512;
    c.H = c.K = 12;
    c.D = 64;
    c.table = table;
    c.mix = MixForm::concat_residual;
    c.hidden = 32;
    c.rounded_weights = true;
    check_attention(c, Dtype::bf16);
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
    for (ScaleForm scale : kScaleForms) {
      AttentionCase c;
      c.causal = false;
      c.T = n % 2 == 0 ? 200 : 45;  // of tiles of keys and queries several, or one
      c.D = n % 3 == 0 ? 32 : 16;
      c.table = table;
      c.scale = scale;
      c.documents = n % 3 == 1;
      c.padding = n % 3 == 2;
      c.window = n % 4 == 3 ? 20 : 0;
      const size_t place = n++;
      if (!is_run(place / 3, place % 3, 2)) continue;
      check_attention(c);
      if (reads_content(table)) continue;
      c.mix = table == TableForm::none ? MixForm::add_residual : MixForm::concat_residual;
      c.hidden = 20;
      check_attention(c);
    }
  }
}

TEST_CASE("a content scale on CUDA is a factor of the queries, to the bit") {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    Machine m(t, cuda_device());
    for (TableForm table : table_forms_of_priors()) {
      if (reads_content(table)) continue;  // queries also contribute to its bias
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c = one_group(70, 16);
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
    c.D = 48;
    c.table = table;
    c.documents = table != TableForm::none;
    c.window = table == TableForm::none ? 40 : 0;
    c.causal = table != TableForm::falling && table != TableForm::fire;
    // See tests/ops/attention_entropy.cpp.
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      check_on_cuda(attention_entropy(c), c, t, 4 * kF32 * 24);
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
